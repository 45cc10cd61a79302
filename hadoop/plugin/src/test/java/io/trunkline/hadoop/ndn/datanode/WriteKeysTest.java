package io.trunkline.hadoop.ndn.datanode;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;

import io.trunkline.hadoop.ndn.wire.SegmentHeader;
import io.trunkline.hadoop.ndn.wire.WriteKey;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.Arrays;
import org.apache.hadoop.util.DataChecksum;
import org.junit.jupiter.api.Test;

class WriteKeysTest {
  private static final WriteKey KEY = new WriteKey(new byte[WriteKey.BYTES]);

  private static final int SEGMENT = 64512;
  private static final int CHUNK = 512;

  private final WriteKeys keys = new WriteKeys();

  private static byte[] sha256(byte[] of) throws Exception {
    return MessageDigest.getInstance("SHA-256").digest(of);
  }

  /** The checksums of a whole block, in their order. */
  private static final byte[] SUMS = sums(4 * SEGMENT / CHUNK);

  private static byte[] sums(int chunks) {
    byte[] sums = new byte[4 * chunks];
    for (int i = 0; i < sums.length; i++) {
      sums[i] = (byte) (i * 7 + i / 256);
    }
    return sums;
  }

  private static SegmentHeader header(long offset, int length) {
    return new SegmentHeader(DataChecksum.Type.CRC32C.id, CHUNK, length, offset);
  }

  private static int sumsAt(SegmentHeader header) {
    return (int) header.offset() / CHUNK * 4;
  }

  /** What a record has for a segment, and a manifest. */
  private static byte[] digest(SegmentHeader header) throws Exception {
    int sumsLength = (int) header.checksumBytes();
    ByteBuffer covered = ByteBuffer.allocate(SegmentHeader.BYTES + sumsLength);
    header.encode(covered.array());
    covered.position(SegmentHeader.BYTES).put(SUMS, sumsAt(header), sumsLength);
    return Arrays.copyOf(sha256(covered.array()), 16);
  }

  private static void block(WriteKeys.Write write, long offset, int length) throws Exception {
    SegmentHeader header = header(offset, length);
    write.took(false, header, digest(header), 0, SUMS, sumsAt(header));
  }

  private static void stream(WriteKeys.Write write, long offset, int length) throws Exception {
    SegmentHeader header = header(offset, length);
    write.took(true, header, digest(header), 0, SUMS, sumsAt(header));
  }

  /** As the replica of a block of that length has it. */
  private static byte[] manifest(int length) throws Exception {
    ByteArrayOutputStream digests = new ByteArrayOutputStream();
    for (int at = 0; at < length; at += SEGMENT) {
      digests.write(digest(header(at, Math.min(SEGMENT, length - at))));
    }
    return sha256(digests.toByteArray());
  }

  private WriteKeys.Write write() {
    return keys.begins("p", 7, 1001, KEY, SEGMENT);
  }

  private void noted(int length) throws Exception {
    WriteKeys.Written written = keys.of("p", 7, 1001);
    assertEquals((length + SEGMENT - 1) / SEGMENT, written.segments());
    assertArrayEquals(manifest(length), written.digest());
    assertEquals(KEY, written.key());
    assertEquals(SEGMENT, written.segmentBytes());
  }

  @Test
  void theDigestIsOverAllSegmentsThatCame() throws Exception {
    WriteKeys.Write write = write();
    block(write, 0, SEGMENT);
    block(write, SEGMENT, SEGMENT);
    noted(2 * SEGMENT);
    // The end of a full block goes by the block's name however short it is.
    block(write, 2 * SEGMENT, 700);
    noted(2 * SEGMENT + 700);
  }

  /** The end of a block mostly goes by the writer's stream, in one packet or in two. */
  @Test
  void theLastSegmentIsNotedHoweverItCame() throws Exception {
    for (int[] lengths :
        new int[][] {{700}, {1536, 512}, {1024, 1}, {SEGMENT}, {CHUNK, SEGMENT - CHUNK, 5}}) {
      WriteKeys.Write write = write();
      block(write, 0, SEGMENT);
      int at = SEGMENT;
      for (int length : lengths) {
        stream(write, at, length);
        at += length;
      }
      noted(at);
    }
  }

  /** Nothing of it is in caches under the block's name. */
  @Test
  void aBlockThatCameByTheStreamAloneIsNotRemembered() throws Exception {
    WriteKeys.Write write = write();
    stream(write, 0, 700);
    stream(write, 0, SEGMENT);
    block(write, 0, SEGMENT);
    assertNull(keys.of("p", 7, 1001));
  }

  /** After a flush the chunk that was cut short comes again, whole: that is another content. */
  @Test
  void afterBytesThatCameAgainNothingIsNoted() throws Exception {
    WriteKeys.Write write = write();
    block(write, 0, SEGMENT);
    stream(write, SEGMENT, 1100);
    stream(write, SEGMENT + 1024, 5000);
    stream(write, SEGMENT + 1100, 5000);
    noted(SEGMENT + 1100);
    WriteKeys.Write other = write();
    block(other, 0, SEGMENT);
    stream(other, SEGMENT, 1100);
    stream(other, SEGMENT + 1100, 5000);
    noted(SEGMENT + 1100);
  }

  /** A byte to a checksum, a checksum to a packet: whoever writes may have it so. */
  @Test
  void checksumsOfATinyChunkAreBounded() throws Exception {
    WriteKeys.Write write = write();
    block(write, 0, SEGMENT);
    int most = WriteKeys.MAX_SUMS_BYTES / 4;
    for (int n = 0; n < 2 * most; n++) {
      SegmentHeader header = new SegmentHeader(DataChecksum.Type.CRC32C.id, 1, 1, SEGMENT + n);
      write.took(true, header, new byte[16], 0, new byte[4], 0);
    }
    assertEquals(WriteKeys.MAX_SUMS_BYTES, write.keptBytes());
    // Nothing is noted past them.
    byte[] noted = keys.of("p", 7, 1001).digest();
    SegmentHeader next = new SegmentHeader(DataChecksum.Type.CRC32C.id, 1, 1, SEGMENT + most);
    write.took(true, next, new byte[16], 0, new byte[4], 0);
    assertArrayEquals(noted, keys.of("p", 7, 1001).digest());
  }

  @Test
  void whatLiesInTwoSegmentsIsNotNoted() throws Exception {
    WriteKeys.Write write = write();
    block(write, 0, SEGMENT);
    stream(write, SEGMENT, 1024);
    stream(write, SEGMENT + 1024, SEGMENT - CHUNK);
    noted(SEGMENT + 1024);
  }

  /** A reader may come long after the write, whose own key is wiped then. */
  @Test
  void aKeyOutlivesItsWrite() throws Exception {
    WriteKey key = new WriteKey(KEY.bytes().clone());
    block(keys.begins("p", 7, 1001, key, SEGMENT), 0, SEGMENT);
    key.wipe();
    assertEquals(KEY, keys.of("p", 7, 1001).key());
  }

  /** What came another way was not sealed, or is not known to be what was. */
  @Test
  void afterASegmentThatWasLeftOutNothingIsNoted() throws Exception {
    WriteKeys.Write write = write();
    block(write, 0, SEGMENT);
    block(write, 2 * SEGMENT, SEGMENT);
    block(write, SEGMENT, SEGMENT);
    noted(SEGMENT);
    WriteKeys.Write append = keys.begins("p", 8, 1002, KEY, SEGMENT);
    block(append, SEGMENT, SEGMENT);
    block(append, 0, SEGMENT);
    assertNull(keys.of("p", 8, 1002), "no block is what an append sealed");
  }

  @Test
  void aKeyIsOfOneBlockAndGeneration() throws Exception {
    begin(7, 1001);
    assertNull(keys.of("p", 7, 1002));
    assertNull(keys.of("p", 8, 1001));
    assertNull(keys.of("q", 7, 1001));
    assertNotNull(keys.of("p", 7, 1001));
    begin(7, 1002);
    assertNull(keys.of("p", 7, 1001), "written to since");
    assertNotNull(keys.of("p", 7, 1002));
    assertNull(keys.begins("p", 7, 1003, null, SEGMENT));
  }

  private void begin(long block, long genstamp) throws Exception {
    block(keys.begins("p", block, genstamp, KEY, SEGMENT), 0, SEGMENT);
  }

  /** Its header comes before stock code has checked its token. */
  @Test
  void aWriteThatBringsNothingPushesNoOtherOut() throws Exception {
    begin(7, 1001);
    assertNotNull(
        keys.begins(
            "p",
            7,
            1001,
            new WriteKey(new byte[] {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}),
            SEGMENT));
    assertEquals(KEY, keys.of("p", 7, 1001).key());
  }

  @Test
  void theLeastRecentlyUsedGoesFirst() throws Exception {
    for (int block = 0; block < WriteKeys.MAX_WRITES; block++) {
      begin(block, 1);
    }
    assertNotNull(keys.of("p", 0, 1));
    begin(-1, 1);
    assertNotNull(keys.of("p", 0, 1));
    assertNull(keys.of("p", 1, 1));
    assertNotNull(keys.of("p", -1, 1));
  }
}

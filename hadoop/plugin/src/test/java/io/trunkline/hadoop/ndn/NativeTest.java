package io.trunkline.hadoop.ndn;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.StockBytes;
import io.trunkline.hadoop.conf.Json;
import io.trunkline.hadoop.library.NativeLibrary;
import io.trunkline.hadoop.ndn.wire.SegmentHeader;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.Random;
import java.util.zip.CRC32C;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The native library as Java sees it. */
@Timeout(60)
class NativeTest {
  private static final String NAME = "/hadoop/blocks/BP-1/1/v=1";
  private static final int SUMS = 126 * 4;

  private final byte[] header = new byte[SegmentHeader.BYTES];
  private final byte[] body = StockBytes.random(new Random(1), SUMS + StockBytes.SEGMENT);
  private final byte[] digests = new byte[64];
  private long node;

  @BeforeEach
  void open() throws IOException {
    NativeLibrary.load("");
    node = Native.nodeOpen("{\"root\":\"/hadoop\",\"retain_bytes\":9000000}");
    new SegmentHeader(2, 512, StockBytes.SEGMENT, 0).encode(header);
  }

  @AfterEach
  void close() {
    Native.nodeClose(node);
  }

  private void publish(long producer) throws IOException {
    Native.producerPublish(
        producer, 0, header, body, 0, SUMS, SUMS, StockBytes.SEGMENT, false, digests, 16);
  }

  @Test
  void aSegmentsDigestIsOfItsHeaderAndChecksums() throws Exception {
    publish(Native.producerOpen(node, NAME, 64512, 8, null, 0));
    MessageDigest sha256 = MessageDigest.getInstance("SHA-256");
    sha256.update(header);
    sha256.update(body, 0, SUMS);
    byte[] expected = new byte[64];
    System.arraycopy(sha256.digest(), 0, expected, 16, 16);
    assertArrayEquals(expected, digests);
  }

  @Test
  void whatIsKeptCanBeHadBack() throws IOException {
    long producer = Native.producerOpen(node, NAME, 64512, 8, null, 0);
    publish(producer);
    byte[] back = new byte[body.length];
    assertTrue(Native.producerKept(producer, 0, back, 0, SUMS, SUMS, StockBytes.SEGMENT));
    assertArrayEquals(body, back);
    assertThrows(
        NdnException.class, () -> Native.producerKept(producer, 0, back, 0, SUMS, SUMS, 512));
    Native.producerAcknowledge(producer, 0);
    assertFalse(Native.producerKept(producer, 0, back, 0, SUMS, SUMS, StockBytes.SEGMENT));
  }

  @Test
  void whatIsTakenLiesWhereItIsWantedAndNowhereElse() throws IOException {
    sum(body);
    long producer = Native.producerOpen(node, NAME, 64512, 8, null, 0);
    publish(producer);
    byte[] key = StockBytes.random(new Random(2), 16);
    long sealing = Native.producerOpen(node, NAME + "/sealed", 64512, 8, key, 0);
    publish(sealing);
    for (byte[] with : new byte[][] {null, key}) {
      String name = with == null ? NAME : NAME + "/sealed";
      byte[] to = new byte[body.length + 30];
      byte[] head = new byte[SegmentHeader.BYTES];
      long pull = Native.pullOpen(node, name, 64512, 0, 4, true, -1, with, 0);
      assertEquals(
          body.length, Native.pullTake(pull, 0, head, to, 7, body.length + 9, digests, 16, 20_000));
      Native.pullClose(pull);
      assertArrayEquals(header, head);
      assertArrayEquals(body, Arrays.copyOfRange(to, 7, 7 + body.length));
      clear(to, 7, body.length);
      assertArrayEquals(new byte[to.length], to, "bytes beside the body");

      pull = Native.pullOpen(node, name, 64512, 0, 4, true, -1, with, 0);
      int dataAt = SUMS + 20;
      assertTrue(
          Native.pullTakePiece(
              pull, 0, head, to, 3, SUMS, dataAt, StockBytes.SEGMENT, digests, 16, 20_000));
      Native.pullClose(pull);
      assertArrayEquals(Arrays.copyOf(body, SUMS), Arrays.copyOfRange(to, 3, 3 + SUMS));
      assertArrayEquals(
          Arrays.copyOfRange(body, SUMS, body.length),
          Arrays.copyOfRange(to, dataAt, dataAt + StockBytes.SEGMENT));
      clear(to, 3, SUMS);
      clear(to, dataAt, StockBytes.SEGMENT);
      assertArrayEquals(new byte[to.length], to, "bytes beside sums and data");
    }
  }

  @Test
  void aBodyOfAnotherLengthIsRefusedAndLiesNowhereElse() throws IOException {
    sum(body);
    publish(Native.producerOpen(node, NAME, 64512, 8, null, 0));
    byte[] to = new byte[body.length + 30];
    byte[] head = new byte[SegmentHeader.BYTES];
    long first = Native.pullOpen(node, NAME, 64512, 0, 4, true, -1, null, 0);
    int max = body.length - 1;
    assertThrows(
        NdnException.class, () -> Native.pullTake(first, 0, head, to, 7, max, null, 0, 20_000));
    clear(to, 7, max);
    assertArrayEquals(new byte[to.length], to, "bytes beside the body");
    assertArrayEquals(new byte[SegmentHeader.BYTES], head);
    long second = Native.pullOpen(node, NAME, 64512, 0, 4, true, -1, null, 0);
    assertThrows(
        NdnException.class,
        () ->
            Native.pullTakePiece(second, 0, head, to, 0, SUMS, SUMS, max - SUMS, null, 0, 20_000));
  }

  /** Has the checksums that stand before the data be those of its chunks. */
  private static void sum(byte[] body) {
    CRC32C crc = new CRC32C();
    for (int chunk = 0; chunk < SUMS / 4; chunk++) {
      crc.reset();
      crc.update(body, SUMS + chunk * 512, 512);
      ByteBuffer.wrap(body).putInt(chunk * 4, (int) crc.getValue());
    }
  }

  private static void clear(byte[] bytes, int at, int length) {
    Arrays.fill(bytes, at, at + length, (byte) 0);
  }

  @Test
  void scalarsAreReadAsTheLibraryForJsonReadsThem() throws IOException {
    for (String good :
        new String[] {
          "{}",
          "{\"version\":2,\"served\":true,\"address\":\"127.0.0.1\",\"port\":4567,\"reason\":\"\"}",
          "{\"a\":\"\\u00e9\\n\\\"\\ud83d\\ude00\",\"b\":{\"c\":-9223372036854775808,\"d\":{\"e\":null}},\"l\":[{}]}",
          "{\"a\":1,\"a\":2} ",
        }) {
      byte[] json = good.getBytes(StandardCharsets.UTF_8);
      assertEquals(Json.scalars(json), NdnNode.scalars(json), good);
    }
    for (String bad : new String[] {"", "[]", "{", "{\"a\":1}{}", "{\"a\":tru}"}) {
      byte[] json = bad.getBytes(StandardCharsets.UTF_8);
      assertThrows(IOException.class, () -> Json.scalars(json), bad);
      assertThrows(NdnException.class, () -> NdnNode.scalars(json), bad);
    }
    assertThrows(NdnException.class, () -> NdnNode.scalars(new byte[70_000]));
  }

  @Test
  void aNodeWithoutRouterHasNoneThatIsUp() throws IOException {
    assertFalse(Native.routerUp(node));
    Native.nodeClose(node);
    assertThrows(IOException.class, () -> Native.routerUp(node));
  }

  @Test
  void failuresAreToldApartByClass() throws IOException {
    long producer = Native.producerOpen(node, NAME, 64512, 64, null, 0);
    assertThrows(
        NoRoomException.class, () -> Native.producerOpen(node, NAME + "/x", 64512, 128, null, 0));
    Native.producerClose(producer, 0);
    assertThrows(ClosedException.class, () -> publish(producer));
    assertEquals(
        NdnException.class,
        assertThrows(NdnException.class, () -> Native.producerOpen(node, "/%zz", 64512, 1, null, 0))
            .getClass());
    publish(Native.producerOpen(node, NAME, 64512, 8, null, 0));
    long pull = Native.pullOpen(node, NAME, 64512, 0, 4, true, -1, null, 0);
    byte[] wrong = Arrays.copyOfRange(digests, 17, 33);
    byte[] to = new byte[body.length];
    // The checksums are random, so it does not even verify.
    assertThrows(
        UnverifiedException.class,
        () -> Native.pullTake(pull, 0, header, to, 0, to.length, wrong, 0, 20_000));
  }
}

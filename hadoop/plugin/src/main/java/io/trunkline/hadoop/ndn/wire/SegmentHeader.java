package io.trunkline.hadoop.ndn.wire;

import io.trunkline.hadoop.util.BigEndian;
import java.io.IOException;
import org.apache.hadoop.util.DataChecksum;

/**
 * The first 24 bytes of a segment's content; after them come the checksums, then the data, as
 * {@link SegmentCut} cuts them out of the body of an HDFS packet.
 *
 * <pre>
 *   magic "TLB1" (4) | checksum type (1) | zero (3) | bytes per checksum (4)
 *   | data length (4) | offset in block (8)
 * </pre>
 *
 * @param checksumType number of {@link DataChecksum.Type}
 * @param bytesPerChecksum data bytes that one checksum covers
 * @param dataLength data bytes in this segment
 * @param offset where in the block the data begins
 */
public record SegmentHeader(int checksumType, int bytesPerChecksum, int dataLength, long offset) {
  /** Length of the header in bytes. */
  public static final int BYTES = 24;

  /**
   * Fewest data bytes of a segment: those of one chunk of HDFS. DataNodes keep a digest for each.
   */
  public static final int MIN_DATA_BYTES = 512;

  /**
   * Most bytes of checksums and data that one segment may carry: with names and headers a packet of
   * 1 MiB, the greatest that streams take.
   */
  public static final int MAX_BODY_BYTES = (1 << 20) - 4096;

  /**
   * Most bytes of checksums and data of segments of a size: checksums take a 64th of the data at
   * most, or what is left of 64 KiB.
   *
   * @param segmentBytes data bytes a segment
   * @return bytes
   */
  public static int maxBodyBytes(int segmentBytes) {
    long body = Math.max(1 << 16, segmentBytes + segmentBytes / 64L);
    return (int) Math.min(body, MAX_BODY_BYTES);
  }

  /**
   * Whether a segment that begins so is not above what segments of a size may be.
   *
   * @param segmentBytes data bytes a segment
   * @return false when its checksums take too much
   */
  public boolean fits(int segmentBytes) {
    return dataLength + checksumBytes() <= maxBodyBytes(segmentBytes);
  }

  /** Length of one checksum. */
  static final int CHECKSUM_BYTES = 4;

  private static final int MAGIC = 0x544C4231;

  private static final int KIND_AT = 4;
  private static final int CHUNK_AT = 8;
  private static final int LENGTH_AT = 12;
  private static final int OFFSET_AT = 16;

  /**
   * Writes the header.
   *
   * @param to at least {@link #BYTES} long
   */
  public void encode(byte[] to) {
    BigEndian.putInt(to, 0, MAGIC);
    BigEndian.putInt(to, KIND_AT, checksumType << 24);
    BigEndian.putInt(to, CHUNK_AT, bytesPerChecksum);
    BigEndian.putInt(to, LENGTH_AT, dataLength);
    BigEndian.putLong(to, OFFSET_AT, offset);
  }

  /**
   * Reads and checks a header.
   *
   * @param from at least {@link #BYTES} long
   * @param bodyLength bytes of checksums and data that came with it
   * @return the header
   * @throws IOException when it is none, or does not fit the body
   */
  public static SegmentHeader decode(byte[] from, int bodyLength) throws IOException {
    if (BigEndian.getInt(from, 0) != MAGIC) {
      throw new IOException("segment without a block segment header");
    }
    int kind = BigEndian.getInt(from, KIND_AT);
    SegmentHeader header =
        new SegmentHeader(
            kind >>> 24,
            BigEndian.getInt(from, CHUNK_AT),
            BigEndian.getInt(from, LENGTH_AT),
            BigEndian.getLong(from, OFFSET_AT));
    if ((kind & 0xFFFFFF) != 0
        || header.bytesPerChecksum <= 0
        || header.dataLength < 0
        || header.offset < 0
        || header.dataLength + header.checksumBytes() != bodyLength) {
      throw new IOException(
          "segment header does not fit its body of " + bodyLength + " bytes: " + header);
    }
    return header;
  }

  /**
   * Length of the checksums before the data.
   *
   * @return bytes
   */
  public long checksumBytes() {
    if (checksumType != DataChecksum.Type.CRC32.id && checksumType != DataChecksum.Type.CRC32C.id) {
      return 0;
    }
    return CHECKSUM_BYTES * ((dataLength + (long) bytesPerChecksum - 1) / bytesPerChecksum);
  }
}

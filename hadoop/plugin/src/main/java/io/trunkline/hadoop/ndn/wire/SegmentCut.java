package io.trunkline.hadoop.ndn.wire;

import io.trunkline.hadoop.wire.PacketHead;
import java.io.IOException;
import org.apache.hadoop.util.DataChecksum;

/**
 * How the body of one HDFS packet, all its checksums and then all its data, is cut into segments:
 * each takes {@code segmentBytes} of data, the last one what is left, and the checksums that cover
 * them. The writer and all readers of a packet cut it alike, so that its record need name the first
 * segment only.
 *
 * <pre>
 *   packet    | sums 0 | sums 1 | sums 2 | data 0   | data 1   | data 2 |
 *   segment 1 | header | sums 1 | data 1   |
 * </pre>
 */
public final class SegmentCut {
  /**
   * One segment and where its parts lie in the packet's body.
   *
   * @param header the segment's header
   * @param sumsAt where its checksums begin, in bytes from the body's beginning
   * @param dataAt where its data begins
   */
  public record Piece(SegmentHeader header, int sumsAt, int dataAt) {
    /**
     * Length of its checksums.
     *
     * @return bytes
     */
    public int sumsLength() {
      return (int) header.checksumBytes();
    }

    /**
     * Length of its data.
     *
     * @return bytes
     */
    public int dataLength() {
      return header.dataLength();
    }
  }

  private final PacketHead head;
  private final int checksumType;
  private final int chunk;
  private final int segmentBytes;

  /**
   * The cut of a packet.
   *
   * @param head the packet's lengths and header
   * @param checksum kind of its checksums
   * @param segmentBytes data bytes a segment
   * @throws IOException when the packet cannot be cut: its body is empty or is not checksums and
   *     data of the lengths it says, chunks do not fill segments, or it makes too many
   */
  public SegmentCut(PacketHead head, DataChecksum checksum, int segmentBytes) throws IOException {
    this.head = head;
    this.checksumType = checksum.getChecksumType().id;
    this.chunk = checksum.getBytesPerChecksum();
    this.segmentBytes = segmentBytes;
    if (!fits(head, checksum, segmentBytes)) {
      throw new IOException(
          "packet of " + head + " with " + checksum + " is not cut at " + segmentBytes + " bytes");
    }
  }

  /**
   * Whether a packet can be cut.
   *
   * @param head the packet's lengths and header
   * @param checksum kind of its checksums
   * @param segmentBytes data bytes a segment
   * @return false when the constructor would refuse it
   */
  public static boolean fits(PacketHead head, DataChecksum checksum, int segmentBytes) {
    int chunk = checksum.getBytesPerChecksum();
    if (chunk <= 0 || segmentBytes <= 0 || segmentBytes % chunk != 0) {
      return false;
    }
    int type = checksum.getChecksumType().id;
    SegmentHeader full = new SegmentHeader(type, chunk, segmentBytes, head.offset());
    SegmentHeader whole = new SegmentHeader(type, chunk, head.dataLength(), head.offset());
    return head.dataLength() > 0
        && (head.dataLength() - 1) / segmentBytes < ControlRecord.MAX_SEGMENTS
        && full.fits(segmentBytes)
        && head.dataLength() + whole.checksumBytes() == head.bodyLength();
  }

  /**
   * How many segments the packet makes.
   *
   * @return at least 1
   */
  public int count() {
    return (head.dataLength() - 1) / segmentBytes + 1;
  }

  /**
   * One of the segments.
   *
   * @param index which, from 0
   * @return where it lies
   */
  public Piece piece(int index) {
    int start = index * segmentBytes;
    int length = Math.min(segmentBytes, head.dataLength() - start);
    SegmentHeader header = new SegmentHeader(checksumType, chunk, length, head.offset() + start);
    int sums = head.bodyLength() - head.dataLength();
    int sumsAt = sums == 0 ? 0 : start / chunk * SegmentHeader.CHECKSUM_BYTES;
    return new Piece(header, sumsAt, sums + start);
  }
}

package io.trunkline.hadoop.ndn.read;

import io.trunkline.hadoop.ndn.wire.ControlRecord;
import io.trunkline.hadoop.ndn.wire.SegmentHeader;
import java.io.IOException;
import java.util.Arrays;
import org.apache.hadoop.util.DataChecksum;

/**
 * What is known of a finalized replica before it is read.
 *
 * @param genstamp its generation stamp
 * @param length its length in bytes
 * @param segmentBytes data bytes a segment, the last one aside
 * @param checksumType number of {@link DataChecksum.Type}
 * @param bytesPerChecksum data bytes that one checksum covers
 * @param manifest the digests of its segments, one after the other; null when they are not to be
 *     had
 */
record ReplicaMetadata(
    long genstamp,
    long length,
    int segmentBytes,
    int checksumType,
    int bytesPerChecksum,
    byte[] manifest) {
  /**
   * Metadata as the library has it.
   *
   * @param numbers as of {@link io.trunkline.hadoop.ndn.Native#blockMetadata}
   * @param manifest the digests that came with it, or null
   * @return the metadata
   * @throws IOException when a number is out of bounds, or the digests do not fit
   */
  static ReplicaMetadata of(long[] numbers, byte[] manifest) throws IOException {
    long segmentBytes = numbers[2];
    long checksumType = numbers[3];
    long bytesPerChecksum = numbers[4];
    if (numbers[0] < 0
        || numbers[1] < 0
        || segmentBytes < 1
        || segmentBytes > SegmentHeader.MAX_BODY_BYTES
        || bytesPerChecksum < 1
        || bytesPerChecksum > Integer.MAX_VALUE
        || checksumType < DataChecksum.Type.NULL.id
        || checksumType > DataChecksum.Type.CRC32C.id) {
      throw new IOException("block metadata is out of bounds: " + Arrays.toString(numbers));
    }
    ReplicaMetadata metadata =
        new ReplicaMetadata(
            numbers[0],
            numbers[1],
            (int) segmentBytes,
            (int) checksumType,
            (int) bytesPerChecksum,
            manifest);
    if (!metadata.longest().fits(metadata.segmentBytes)) {
      throw new IOException("block metadata of segments above the greatest: " + metadata);
    }
    if (manifest != null
        && (manifest.length % ControlRecord.DIGEST_BYTES != 0
            || manifest.length / ControlRecord.DIGEST_BYTES != metadata.segments())) {
      throw new IOException("block manifest does not fit: " + metadata);
    }
    return metadata;
  }

  private long segments() {
    return Math.max(0, length - 1) / segmentBytes + 1;
  }

  /** Most bytes of checksums and data that one of its segments has. */
  int bodyBytes() {
    SegmentHeader longest = longest();
    return (int) (longest.dataLength() + longest.checksumBytes());
  }

  private SegmentHeader longest() {
    int data = (int) Math.min(segmentBytes, length);
    return new SegmentHeader(checksumType, bytesPerChecksum, data, 0);
  }

  /** What it takes in memory, roughly, in bytes. */
  int weight() {
    return 200 + (manifest == null ? 0 : manifest.length);
  }

  @Override
  public String toString() {
    return "genstamp "
        + genstamp
        + ", "
        + length
        + " bytes in segments of "
        + segmentBytes
        + ", checksums of type "
        + checksumType
        + " over "
        + bytesPerChecksum;
  }
}

package io.trunkline.hadoop.ndn.read;

import io.trunkline.hadoop.conf.Json;
import io.trunkline.hadoop.ndn.wire.ControlRecord;
import io.trunkline.hadoop.ndn.wire.SegmentHeader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
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
   * Reads metadata.
   *
   * @param text JSON
   * @param reader takes it apart
   * @param manifest the digests that came with it, or null
   * @return the metadata
   * @throws IOException when it is malformed
   */
  static ReplicaMetadata parse(String text, Json.Reader reader, byte[] manifest)
      throws IOException {
    ReplicaMetadata metadata;
    try {
      Map<String, String> json = reader.read(text.getBytes(StandardCharsets.UTF_8));
      metadata =
          new ReplicaMetadata(
              Long.parseLong(json.getOrDefault("genstamp", "")),
              Long.parseLong(json.getOrDefault("length", "")),
              Integer.parseInt(json.getOrDefault("segment_bytes", "")),
              Integer.parseInt(json.getOrDefault("checksum_type", "")),
              Integer.parseInt(json.getOrDefault("bytes_per_checksum", "")),
              manifest);
    } catch (IOException | NumberFormatException e) {
      throw new IOException("block metadata is malformed: " + e.getMessage(), e);
    }
    if (metadata.genstamp < 0
        || metadata.length < 0
        || metadata.segmentBytes < 1
        || metadata.segmentBytes > SegmentHeader.MAX_BODY_BYTES
        || metadata.bytesPerChecksum < 1
        || metadata.checksumType < DataChecksum.Type.NULL.id
        || metadata.checksumType > DataChecksum.Type.CRC32C.id) {
      throw new IOException("block metadata is out of bounds: " + metadata);
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

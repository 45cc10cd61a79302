package io.trunkline.hadoop.ndn.read;

import io.trunkline.hadoop.conf.Json;
import io.trunkline.hadoop.ndn.wire.SegmentHeader;
import java.io.IOException;
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
 */
record ReplicaMetadata(
    long genstamp, long length, int segmentBytes, int checksumType, int bytesPerChecksum) {
  /**
   * Reads metadata.
   *
   * @param text JSON
   * @return the metadata
   * @throws IOException when it is malformed
   */
  static ReplicaMetadata parse(String text) throws IOException {
    ReplicaMetadata metadata;
    try {
      Map<String, String> json = Json.scalars(text);
      metadata =
          new ReplicaMetadata(
              Long.parseLong(json.getOrDefault("genstamp", "")),
              Long.parseLong(json.getOrDefault("length", "")),
              Integer.parseInt(json.getOrDefault("segment_bytes", "")),
              Integer.parseInt(json.getOrDefault("checksum_type", "")),
              Integer.parseInt(json.getOrDefault("bytes_per_checksum", "")));
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
    return metadata;
  }
}

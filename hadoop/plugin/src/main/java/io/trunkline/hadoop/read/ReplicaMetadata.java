package io.trunkline.hadoop.read;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.trunkline.hadoop.wire.SegmentHeader;
import java.io.IOException;
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
  private static final ObjectMapper JSON = new ObjectMapper();

  /**
   * Reads metadata.
   *
   * @param text JSON
   * @return the metadata
   * @throws IOException when it is malformed
   */
  static ReplicaMetadata parse(String text) throws IOException {
    JsonNode json;
    try {
      json = JSON.readTree(text);
    } catch (JsonProcessingException e) {
      throw new IOException("block metadata is no JSON", e);
    }
    ReplicaMetadata metadata =
        new ReplicaMetadata(
            json.path("genstamp").asLong(-1),
            json.path("length").asLong(-1),
            json.path("segment_bytes").asInt(),
            json.path("checksum_type").asInt(-1),
            json.path("bytes_per_checksum").asInt());
    if (metadata.genstamp < 0
        || metadata.length < 0
        || metadata.segmentBytes < 1
        || metadata.segmentBytes > SegmentHeader.MAX_BODY_BYTES
        || metadata.bytesPerChecksum < 1
        || metadata.checksum() == null) {
      throw new IOException("block metadata is out of bounds: " + metadata);
    }
    return metadata;
  }

  /** The checksum that segments carry, or null when its kind is unknown. */
  DataChecksum checksum() {
    for (DataChecksum.Type type : DataChecksum.Type.values()) {
      if (type.id == checksumType && type != DataChecksum.Type.DEFAULT && type.id < 3) {
        return DataChecksum.newDataChecksum(type, bytesPerChecksum);
      }
    }
    return null;
  }
}

package io.trunkline.hadoop.ndn.read;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.code_intelligence.jazzer.junit.FuzzTest;
import io.trunkline.hadoop.Fuzzing;
import io.trunkline.hadoop.conf.Json;
import io.trunkline.hadoop.ndn.wire.ControlRecord;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** Anything as what is known of a replica; the first byte is how many digests come with it. */
class ReplicaMetadataFuzz {
  @FuzzTest
  void metadata(byte[] bytes) {
    if (bytes.length == 0) {
      return;
    }
    int digests = bytes[0];
    byte[] manifest = digests < 0 ? null : new byte[digests * ControlRecord.DIGEST_BYTES];
    String text = new String(Arrays.copyOfRange(bytes, 1, bytes.length), StandardCharsets.UTF_8);
    ReplicaMetadata metadata =
        Fuzzing.decode(
            bytes.length, 128, () -> ReplicaMetadata.parse(text, Json::scalars, manifest));
    if (metadata == null) {
      return;
    }
    assertTrue(metadata.length() >= 0 && metadata.segmentBytes() > 0);
    if (manifest != null) {
      long last = (long) (digests - 1) * metadata.segmentBytes();
      assertEquals(
          digests,
          Math.max(0, metadata.length() - 1) / metadata.segmentBytes() + 1,
          () -> metadata + " with digests up to " + last);
    }
  }
}

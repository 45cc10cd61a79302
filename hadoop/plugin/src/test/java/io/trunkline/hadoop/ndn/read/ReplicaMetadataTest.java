package io.trunkline.hadoop.ndn.read;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.trunkline.hadoop.conf.Json;
import java.io.IOException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ReplicaMetadataTest {
  private static final String GOOD =
      "{\"genstamp\":1001,\"length\":5,\"segment_bytes\":64512,"
          + "\"checksum_type\":2,\"bytes_per_checksum\":512}";

  @Test
  void goodMetadataIsRead() throws IOException {
    byte[] manifest = new byte[16];
    ReplicaMetadata metadata = ReplicaMetadata.parse(GOOD, Json::scalars, manifest);
    assertEquals(new ReplicaMetadata(1001, 5, 64512, 2, 512, manifest), metadata);
    assertThrows(IOException.class, () -> ReplicaMetadata.parse(GOOD, Json::scalars, new byte[32]));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "{",
        "[]",
        "{\"genstamp\":1}",
        "{\"genstamp\":1,\"length\":-5,\"segment_bytes\":1,\"checksum_type\":2,"
            + "\"bytes_per_checksum\":512}",
        "{\"genstamp\":1,\"length\":5,\"segment_bytes\":9999999,\"checksum_type\":2,"
            + "\"bytes_per_checksum\":512}",
        "{\"genstamp\":1,\"length\":5,\"segment_bytes\":64512,\"checksum_type\":9,"
            + "\"bytes_per_checksum\":512}",
        "{\"genstamp\":1,\"length\":5,\"segment_bytes\":64512,\"checksum_type\":2,"
            + "\"bytes_per_checksum\":0}",
      })
  void badMetadataIsRefused(String text) {
    assertThrows(IOException.class, () -> ReplicaMetadata.parse(text, Json::scalars, null));
  }
}

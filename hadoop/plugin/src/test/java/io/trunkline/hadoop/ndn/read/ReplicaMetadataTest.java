package io.trunkline.hadoop.ndn.read;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.io.IOException;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class ReplicaMetadataTest {
  @Test
  void goodMetadataIsTaken() throws IOException {
    long[] numbers = {1001, 5, 64512, 2, 512};
    byte[] manifest = new byte[16];
    assertEquals(
        new ReplicaMetadata(1001, 5, 64512, 2, 512, manifest),
        ReplicaMetadata.of(numbers, manifest));
    assertThrows(IOException.class, () -> ReplicaMetadata.of(numbers, new byte[32]));
    assertThrows(IOException.class, () -> ReplicaMetadata.of(numbers, new byte[15]));
  }

  @ParameterizedTest
  @CsvSource({
    "5, 0, 2, 512",
    "-1, 64512, 2, 512",
    "5, 9999999, 2, 512",
    "5, 9223372036854775807, 2, 512",
    "9000000, 516096, 2, 128",
    "5, 64512, 9, 512",
    "5, 64512, 4294967298, 512",
    "5, 64512, 2, 0",
    "5, 64512, 2, 4294967808",
    "9223372036854775807, 64512, 2, 512",
  })
  void badMetadataIsRefused(long length, long segmentBytes, long type, long bytesPerChecksum) {
    long[] numbers = {1, length, segmentBytes, type, bytesPerChecksum};
    assertThrows(IOException.class, () -> ReplicaMetadata.of(numbers, new byte[16]));
  }
}

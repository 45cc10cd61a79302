package io.trunkline.hadoop.ndn.wire;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/**
 * What fuzzing begins with is of the version that is spoken: of another one it would be refused at
 * its first bytes.
 */
class ControlSeedsTest {
  private interface Reader {
    Object read(byte[] bytes) throws IOException;
  }

  private static Set<String> whole(String of, Reader reader)
      throws IOException, URISyntaxException {
    Path seeds = Path.of(ControlSeedsTest.class.getResource("ControlFuzzInputs/" + of).toURI());
    Set<String> whole = new TreeSet<>();
    try (Stream<Path> all = Files.list(seeds)) {
      for (Path seed : (Iterable<Path>) all::iterator) {
        try {
          if (reader.read(Files.readAllBytes(seed)) != null) {
            whole.add(seed.getFileName().toString());
          }
        } catch (IOException refused) {
          // as most of them are
        }
      }
    }
    return whole;
  }

  @Test
  void thoseThatAreRightAreTaken() throws IOException, URISyntaxException {
    assertEquals(
        Set.of("open", "sealed"),
        whole("preamble", bytes -> Preamble.decode(ByteBuffer.wrap(bytes))));
    assertEquals(
        Set.of("right"), whole("hello", bytes -> SecureHello.decode(ByteBuffer.wrap(bytes))));
    assertEquals(Set.of("right"), whole("welcome", Welcome::decode));
  }
}

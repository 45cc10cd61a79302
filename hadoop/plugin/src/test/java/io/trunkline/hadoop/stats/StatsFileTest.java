package io.trunkline.hadoop.stats;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The counters' file in a directory that others may write to, such as /tmp. */
class StatsFileTest {
  @TempDir private Path directory;

  @Test
  void noLinkIsWrittenThrough() throws IOException {
    Path victim = Files.writeString(directory.resolve("victim"), "precious");
    Path stats = directory.resolve("stats.json");
    for (Path way : List.of(stats, StatsFile.part(stats))) {
      Files.createSymbolicLink(way, victim);
    }
    StatsFile.replace(StatsFile.part(stats), stats, "{}");
    assertTrue(Files.isRegularFile(stats, LinkOption.NOFOLLOW_LINKS));
    assertEquals("{}", Files.readString(stats));
    assertEquals("precious", Files.readString(victim));
  }

  @Test
  void nothingIsLeftOfAWriteThatFails() throws IOException {
    Path stats = Files.createDirectory(directory.resolve("stats.json"));
    Files.writeString(stats.resolve("full"), "");
    Path part = StatsFile.part(stats);
    assertThrows(IOException.class, () -> StatsFile.replace(part, stats, "{}"));
    try (Stream<Path> left = Files.list(directory)) {
      assertFalse(left.anyMatch(part::equals));
    }
  }
}

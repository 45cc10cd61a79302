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
import java.util.concurrent.TimeUnit;
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

  /** An operation that goes by stock TCP ends without a word of its own. */
  @Test
  void whatFallsBackIsWrittenSoonAlone() throws Exception {
    Path stats = directory.resolve("stats.json");
    StatsFile.changed(stats.toString());
    String before = written(stats, "");
    TransferStats.get().fallback("ndn", "tcp", Fallback.SECURED_OTHER, "a peer", "a test");
    // It is written each ten seconds in any case.
    assertTrue(written(stats, before).contains("secured_other"));
  }

  private static String written(Path file, String before) throws Exception {
    long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(8);
    while (System.nanoTime() < until) {
      String text = Files.exists(file) ? Files.readString(file) : "";
      if (!text.equals(before)) {
        return text;
      }
      Thread.sleep(10);
    }
    throw new AssertionError("nothing else was written in time");
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

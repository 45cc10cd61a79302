package io.trunkline.hadoop.stats;

import io.trunkline.hadoop.util.DaemonThreads;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.hadoop.fs.CommonConfigurationKeysPublic;
import org.apache.hadoop.util.ShutdownHookManager;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Writes the JVM's counters to a file: soon after something has ended, once a second where much
 * does, when the JVM ends, and every few seconds where they have changed by themselves, as memory
 * that is given back. A reader never sees half a file.
 */
public final class StatsFile {
  private static final Logger LOG = LoggerFactory.getLogger(StatsFile.class);

  /** It is written once nothing has ended for this long, or the limit after the first change. */
  private static final long QUIET_MS = 50;

  private static final long LIMIT_MS = 1000;

  private static final long PERIOD_MS = 10_000;

  /** Below that of file systems, so that what they write as they close is counted. */
  private static final int HOOK_PRIORITY = 1;

  private static final ConcurrentHashMap<String, StatsFile> FILES = new ConcurrentHashMap<>();
  private static final AtomicBoolean HOOKED = new AtomicBoolean();
  private static final ScheduledExecutorService WRITER =
      Executors.newSingleThreadScheduledExecutor(new DaemonThreads("trunkline-stats"));

  private final Path path;
  private final Path part;
  private final AtomicBoolean due = new AtomicBoolean();

  /** By {@link System#nanoTime}. */
  private volatile long changedAt;

  private String written = "";
  private boolean failing;

  private StatsFile(Path path) {
    this.path = path;
    part = part(path);
    WRITER.scheduleWithFixedDelay(this::write, PERIOD_MS, PERIOD_MS, TimeUnit.MILLISECONDS);
  }

  /** What is written first, beside the file, so that a reader never sees half of it. */
  static Path part(Path path) {
    return path.resolveSibling(
        "." + path.getFileName() + "." + ProcessHandle.current().pid() + ".part");
  }

  /**
   * Writes text to a file. A symbolic link that somebody has laid in its way is replaced, and what
   * it leads to is left alone.
   *
   * @param part a new file in the same directory
   * @param path the file
   * @throws IOException when it cannot be written
   */
  static void replace(Path part, Path path, String text) throws IOException {
    Files.deleteIfExists(part);
    Files.writeString(part, text, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
    try {
      Files.move(part, path, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    } catch (IOException e) {
      Files.deleteIfExists(part);
      throw e;
    }
  }

  /**
   * The counters have changed: the file is written soon.
   *
   * @param path the file, empty for none
   */
  public static void changed(String path) {
    hookOnce();
    if (!path.isEmpty()) {
      FILES.computeIfAbsent(path, p -> new StatsFile(Path.of(p))).writeSoon();
    }
  }

  /** The counters have changed: every file of this JVM's is written soon. */
  static void changed() {
    FILES.values().forEach(StatsFile::writeSoon);
  }

  private static void hookOnce() {
    if (HOOKED.compareAndSet(false, true)) {
      try {
        // Not told how long it may take, Hadoop parses its whole configuration anew to find out.
        ShutdownHookManager.get()
            .addShutdownHook(
                StatsFile::atExit,
                HOOK_PRIORITY,
                CommonConfigurationKeysPublic.SERVICE_SHUTDOWN_TIMEOUT_DEFAULT,
                ShutdownHookManager.TIME_UNIT_DEFAULT);
      } catch (IllegalStateException e) {
        LOG.debug("the process ends already, its counters are written no more");
      }
    }
  }

  private static void atExit() {
    LOG.info("transfer counters: {}", TransferStats.get().json());
    for (StatsFile file : FILES.values()) {
      file.write();
    }
  }

  private void writeSoon() {
    long now = System.nanoTime();
    changedAt = now;
    if (due.compareAndSet(false, true)) {
      WRITER.schedule(() -> writeWhenQuiet(now), QUIET_MS, TimeUnit.MILLISECONDS);
    }
  }

  /** A client that writes many small files is not kept busy by this one. */
  private void writeWhenQuiet(long dueSince) {
    long now = System.nanoTime();
    long quietMs = TimeUnit.NANOSECONDS.toMillis(now - changedAt);
    if (quietMs >= QUIET_MS || TimeUnit.NANOSECONDS.toMillis(now - dueSince) >= LIMIT_MS) {
      due.set(false);
      write();
    } else {
      WRITER.schedule(() -> writeWhenQuiet(dueSince), QUIET_MS - quietMs, TimeUnit.MILLISECONDS);
    }
  }

  private synchronized void write() {
    String json = TransferStats.get().json();
    if (json.equals(written)) {
      return;
    }
    try {
      replace(part, path, json + "\n");
      written = json;
      failing = false;
    } catch (IOException e) {
      if (!failing) {
        failing = true;
        LOG.warn("cannot write the counters to {}; retrying: {}", path, e.toString());
      }
    }
  }
}

package io.trunkline.hadoop.mirror;

import io.trunkline.hadoop.conf.MirrorSettings;
import io.trunkline.hadoop.conf.Setting;
import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.stats.StatsFile;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.tap.PassThrough;
import io.trunkline.hadoop.transport.PlaneHealth;
import io.trunkline.hadoop.util.DaemonThreads;
import io.trunkline.hadoop.util.LogLimit;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reports connections of pipelines in the background: no write ever waits for it. So many may wait
 * to be reported and no more; a controller that is away is left alone for a while, longer each
 * time.
 */
final class Reports {
  /** Most blocks that wait to be reported for the first time. */
  static final int MAX_WAITING = 256;

  private static final Logger LOG = LoggerFactory.getLogger(Reports.class);
  private static final int MOST_THREADS = 4;
  private static final int MAX_REASONS = 32;
  private static final String OTHER = "other";

  /** As long as the controller is left alone after its first failure. */
  private static final long ENDS_AGAIN_MS = 5000;

  /** The only one whose health is kept. */
  private static final String CONTROLLER = "controller";

  /** By settings, which the DataNodes of a process may share. */
  private static final Map<Settings, Reports> OF_THIS_JVM = new HashMap<>();

  private static final Map<String, LongAdder> REASONS = new ConcurrentSkipListMap<>();

  private static final HeldTimes HELD = new HeldTimes();

  /** Reports that have not ended. */
  private static final AtomicInteger OPEN = new AtomicInteger();

  /** Of this JVM, as few blocks begin at the same moment. */
  private static final ScheduledThreadPoolExecutor THREADS =
      threads("trunkline-mirror", MOST_THREADS);

  /** Has nothing to do where the controller answers. */
  private static final ScheduledThreadPoolExecutor LIMITS = threads("trunkline-mirror-limit", 1);

  static {
    TransferStats.get().numbers(Reports::numbers);
  }

  private final MirrorSettings settings;
  private final String statsFile;
  private final Controller controller;
  private final TransferStats stats = TransferStats.get();
  private final PlaneHealth health = new PlaneHealth(System::nanoTime);
  private final AtomicInteger waiting = new AtomicInteger();
  private final AtomicBoolean away = new AtomicBoolean();
  private final Map<Counter, LogLimit> lines = new ConcurrentHashMap<>();
  private final UntoldEnds untoldEnds = new UntoldEnds(System::nanoTime);

  /** Whether ends that are untold will be told in a while. */
  private final AtomicBoolean endsAgain = new AtomicBoolean();

  private Reports(Settings settings) throws IOException {
    this.settings = settings.mirror();
    this.statsFile = settings.statsFile();
    this.controller = new Controller(this.settings, LIMITS);
  }

  private static ScheduledThreadPoolExecutor threads(String name, int most) {
    ScheduledThreadPoolExecutor threads =
        new ScheduledThreadPoolExecutor(most, new DaemonThreads(name));
    threads.setRemoveOnCancelPolicy(true);
    return threads;
  }

  /**
   * Those of settings.
   *
   * @param settings the settings
   * @return them
   * @throws IOException when a file that the settings name is not as it should be
   */
  static Reports of(Settings settings) throws IOException {
    synchronized (OF_THIS_JVM) {
      Reports known = OF_THIS_JVM.get(settings);
      if (known == null) {
        known = new Reports(settings);
        OF_THIS_JVM.put(settings, known);
        LOG.info("mirror: pipelines are reported to {}", settings.mirror().controller());
        if (known.controller.tokenInClear()) {
          LOG.warn(
              "mirror: the token goes to {} unencrypted; use https",
              settings.mirror().controller());
        }
      }
      return known;
    }
  }

  private static Map<String, Long> numbers() {
    Map<String, Long> numbers = new TreeMap<>();
    numbers.put("mirror_open", OPEN.longValue());
    numbers.putAll(HELD.numbers());
    REASONS.forEach((why, count) -> numbers.put("mirror_refused_" + why, count.sum()));
    return numbers;
  }

  /**
   * Reports a DataNode's connections of one pipeline for as long as the last of them lives, from
   * when the header has left: whom it wakes may take this processor.
   *
   * @param hops the connections, one at least; the last is the one that is tapped
   * @return told when that has ended
   */
  PassThrough take(List<Hop> hops) {
    stats.add(Counter.MIRROR_REPORTED, hops.size());
    if (waiting.incrementAndGet() > MAX_WAITING) {
      waiting.decrementAndGet();
      stats.add(Counter.MIRROR_DROPPED, hops.size());
      rarely(
          Counter.MIRROR_DROPPED,
          hops,
          MAX_WAITING + " others wait to be reported to the controller");
      return PassThrough.INSTANCE;
    }
    OPEN.incrementAndGet();
    return new Report(this, hops);
  }

  /**
   * The header of a write goes on to the next DataNode.
   *
   * @param nanos how long it was held to have its connections reported
   */
  static void held(long nanos) {
    HELD.add(nanos);
  }

  // What reports ask for.

  /** A report that was taken begins, or will not any more. */
  void begun() {
    waiting.decrementAndGet();
  }

  /** A report that was taken has come to its end. */
  void ended() {
    OPEN.decrementAndGet();
    StatsFile.changed(statsFile);
  }

  void execute(Runnable task) {
    THREADS.execute(task);
  }

  ScheduledFuture<?> later(Runnable task, long delayMs) {
    return THREADS.schedule(task, delayMs, TimeUnit.MILLISECONDS);
  }

  /**
   * Tells the controller of all connections.
   *
   * @param hops the connections
   * @param waits whether its answer may wait for the pipeline to be armed
   * @return what it says
   * @throws IOException when it does not answer, or has not of late; that is counted and logged
   */
  Told ask(List<Hop> hops, boolean waits) throws IOException {
    checkHealth();
    try {
      Told told = controller.report(hops, waits ? settings.waitMs() : 0);
      RefusedException always =
          told.refusals().stream().filter(RefusedException::always).findFirst().orElse(null);
      if (always == null) {
        well();
      } else {
        failed(always.getMessage());
      }
      return told;
    } catch (IOException e) {
      stats.add(Counter.MIRROR_UNREACHABLE);
      failed(said(e));
      throw e;
    }
  }

  /**
   * Ends a pipeline; later, while the controller is away.
   *
   * @param id as the controller knows it
   * @param untilNanos when its lease ends it anyway, by {@link System#nanoTime}
   */
  void end(String id, long untilNanos) {
    untoldEnds.add(new UntoldEnds.Ended(id, untilNanos));
    tellEnds();
  }

  /** Tells as much as can be told now, and sees to it that the rest is in a while. */
  private void tellEnds() {
    while (health.paused(CONTROLLER) == null) {
      UntoldEnds.Ended ended = untoldEnds.take();
      if (ended == null) {
        return;
      }
      try {
        controller.end(ended.id());
        well();
      } catch (RefusedException e) {
        LOG.debug("mirror: {} was not ended, its lease will: {}", ended.id(), e.toString());
      } catch (IOException e) {
        untoldEnds.add(ended);
        failed(said(e));
      }
    }
    if (!untoldEnds.isEmpty() && endsAgain.compareAndSet(false, true)) {
      later(this::tellEndsAgain, ENDS_AGAIN_MS);
    }
  }

  private void tellEndsAgain() {
    endsAgain.set(false);
    tellEnds();
  }

  void armed(List<Hop> hops) {
    stats.add(Counter.MIRROR_ARMED);
    LOG.debug("mirror: {}: armed", name(hops));
  }

  /** All connections are known, and it is not armed. */
  void late(List<Hop> hops) {
    stats.add(Counter.MIRROR_LATE);
    rarely(
        Counter.MIRROR_LATE,
        hops,
        "not armed within "
            + settings.waitMs()
            + " ms after all of its connections were known; copies may begin later");
  }

  /** Others have not reported theirs for as long as the lease. */
  void incomplete(List<Hop> hops) {
    stats.add(Counter.MIRROR_INCOMPLETE);
    rarely(
        Counter.MIRROR_INCOMPLETE,
        hops,
        "other DataNodes have not reported their connections; all of them need "
            + Setting.TRANSPORT.key()
            + " = mirror,tcp");
  }

  /** The counter that a reason has. */
  String reason(String why) {
    boolean counted = REASONS.size() < MAX_REASONS || REASONS.containsKey(why);
    return why.isEmpty() || !counted ? OTHER : why;
  }

  void refused(List<Hop> hops, String reason, String what) {
    REASONS.computeIfAbsent(reason, k -> new LongAdder()).increment();
    stats.add(Counter.MIRROR_REFUSED);
    rarely(Counter.MIRROR_REFUSED, hops, what);
  }

  /** One line a minute of each kind, as it may be so of every block. */
  private void rarely(Counter kind, List<Hop> hops, String why) {
    if (lines.computeIfAbsent(kind, k -> new LogLimit()).allows()) {
      LOG.info(
          "mirror: {} is not mirrored: {}; more in a minute are only counted", name(hops), why);
    } else {
      LOG.debug("mirror: {} is not mirrored: {}", name(hops), why);
    }
    StatsFile.changed(statsFile);
  }

  private static String name(List<Hop> hops) {
    return hops.get(0).blockName();
  }

  // Whether the controller can be asked.

  private void checkHealth() throws IOException {
    String paused = health.paused(CONTROLLER);
    if (paused != null) {
      stats.add(Counter.MIRROR_UNREACHABLE);
      throw new IOException(paused);
    }
  }

  private void well() {
    health.succeeded(CONTROLLER);
    if (away.compareAndSet(true, false)) {
      LOG.info("mirror: the controller at {} answers again", settings.controller());
    }
  }

  private void failed(String why) {
    health.failed(CONTROLLER, PlaneHealth.Failure.BAD, why);
    StatsFile.changed(statsFile);
    if (away.compareAndSet(false, true)) {
      LOG.warn(
          "mirror: the controller at {} cannot be used, blocks are not mirrored; retrying: {}",
          settings.controller(),
          why);
    }
  }

  private static String said(IOException e) {
    return Text.printable(e.getMessage() == null ? e.toString() : e.getMessage());
  }
}

package io.trunkline.hadoop.transport;

import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Remembers which transfers by a transport have failed of late, so that the next ones go by another
 * at once instead of waiting for what does not work each. It is kept by subject, a DataNode or a
 * block, as one of them that is bad says nothing of the others. Only when several in a row got no
 * answer at all, and none did in between, is the transport as a whole left alone for a while. A
 * pause doubles with every failure in a row.
 *
 * <pre>
 *   GOOD --failed--> PAUSED --pause over--> GOOD (on trial) --succeeded--> GOOD
 *                       ^------------------failed-----------'
 * </pre>
 */
public final class PlaneHealth {
  /** What a failure shows. */
  public enum Failure {
    /** The subject is bad, and tells nothing of others: its data is damaged, it broke off. */
    BAD,
    /** Nothing came. */
    SILENT
  }

  /**
   * A subject is left alone.
   *
   * @param leftMs for so many milliseconds from now
   * @param begins whether it begins now; false for a further failure during the same pause
   */
  public record Pause(long leftMs, boolean begins) {}

  /** So many subjects in a row that got no answer show that nobody does. */
  static final int SILENT_SUBJECTS = 3;

  private static final long FIRST_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(5);
  private static final int MAX_DOUBLINGS = 4;
  private static final int MAX_SUBJECTS = 4096;

  /** The pauses of one subject, or of the whole. */
  private static final class Pauses {
    private int failures;
    private long untilNanos;
    private String cause = "";

    boolean over(long now) {
      return failures == 0 || now - untilNanos >= 0;
    }

    /** Several failures during one pause count once; returns whether this one begins a pause. */
    boolean failed(long now, String why) {
      if (!over(now)) {
        return false;
      }
      untilNanos = now + (FIRST_PAUSE_NANOS << Math.min(failures, MAX_DOUBLINGS));
      failures++;
      cause = why;
      return true;
    }
  }

  private final LongSupplier nanoClock;
  private final Pauses whole = new Pauses();
  private final Set<String> silent = new HashSet<>();
  private final Map<String, Pauses> subjects =
      new LinkedHashMap<>(16, 0.75f, true) {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, Pauses> eldest) {
          return size() > MAX_SUBJECTS;
        }
      };

  /**
   * A transport in good health.
   *
   * @param nanoClock monotonic clock in nanoseconds
   */
  public PlaneHealth(LongSupplier nanoClock) {
    this.nanoClock = nanoClock;
  }

  /**
   * Why a transfer should not be tried now.
   *
   * @param subject the DataNode or block
   * @return the last failure of the subject or of all, or null when it may be tried
   */
  public synchronized String paused(String subject) {
    long now = nanoClock.getAsLong();
    if (!whole.over(now)) {
      return whole.cause;
    }
    Pauses own = subjects.get(subject);
    return own == null || own.over(now) ? null : own.cause;
  }

  /**
   * A transfer failed.
   *
   * @param subject the DataNode or block
   * @param failure what it shows
   * @param why what happened
   * @return the subject's pause
   */
  public synchronized Pause failed(String subject, Failure failure, String why) {
    long now = nanoClock.getAsLong();
    Pauses own = subjects.computeIfAbsent(subject, s -> new Pauses());
    boolean begins = own.failed(now, why);
    if (failure == Failure.SILENT) {
      silent.add(subject);
      if (silent.size() >= SILENT_SUBJECTS) {
        silent.clear();
        whole.failed(now, why);
      }
    }
    return new Pause(TimeUnit.NANOSECONDS.toMillis(own.untilNanos - now), begins);
  }

  /**
   * A transfer came to its end. One that began before a pause does not end it.
   *
   * @param subject the DataNode or block
   */
  public synchronized void succeeded(String subject) {
    long now = nanoClock.getAsLong();
    silent.clear();
    if (whole.over(now)) {
      whole.failures = 0;
    }
    Pauses own = subjects.get(subject);
    if (own != null && own.over(now)) {
      subjects.remove(subject);
    }
  }
}

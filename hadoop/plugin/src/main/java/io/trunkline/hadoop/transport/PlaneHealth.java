package io.trunkline.hadoop.transport;

import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Remembers that transfers by name have failed of late, so that the next ones go by TCP at once
 * instead of waiting for a dead plane each. The pause doubles with every failure in a row.
 *
 * <pre>
 *   GOOD --failed--> PAUSED --pause over--> GOOD (on trial) --succeeded--> GOOD
 *                       ^------------------failed-----------'
 * </pre>
 */
public final class PlaneHealth {
  private static final long FIRST_PAUSE_NANOS = TimeUnit.SECONDS.toNanos(5);
  private static final int MAX_DOUBLINGS = 4;

  private final LongSupplier nanoClock;
  private int failures;
  private long pausedUntilNanos;
  private String cause = "";

  /**
   * A plane in good health.
   *
   * @param nanoClock monotonic clock in nanoseconds
   */
  public PlaneHealth(LongSupplier nanoClock) {
    this.nanoClock = nanoClock;
  }

  /**
   * Whether a transfer by name may be tried now.
   *
   * @return false during a pause
   */
  public synchronized boolean good() {
    return failures == 0 || nanoClock.getAsLong() - pausedUntilNanos >= 0;
  }

  /**
   * Why the plane is paused.
   *
   * @return the last failure
   */
  public synchronized String cause() {
    return cause;
  }

  /**
   * A transfer by name failed for want of an answer. Several failures during one pause count once.
   *
   * @param why what happened
   * @return how long the plane is paused now, in milliseconds
   */
  public synchronized long failed(String why) {
    long now = nanoClock.getAsLong();
    if (good()) {
      pausedUntilNanos = now + (FIRST_PAUSE_NANOS << Math.min(failures, MAX_DOUBLINGS));
      failures++;
      cause = why;
    }
    return TimeUnit.NANOSECONDS.toMillis(pausedUntilNanos - now);
  }

  /** A transfer by name came to its end. */
  public synchronized void succeeded() {
    if (good()) {
      failures = 0;
    }
  }
}

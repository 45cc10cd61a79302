package io.trunkline.hadoop.util;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;

/** Lets one log line a minute through of what strangers can bring about as often as they like. */
public final class LogLimit {
  private static final long QUIET_NANOS = TimeUnit.MINUTES.toNanos(1);

  private final LongSupplier nanoClock;
  private final AtomicLong nextNanos;

  /** A limit that lets the first line through. */
  public LogLimit() {
    this(System::nanoTime);
  }

  LogLimit(LongSupplier nanoClock) {
    this.nanoClock = nanoClock;
    nextNanos = new AtomicLong(nanoClock.getAsLong());
  }

  /**
   * Whether a line may be written now.
   *
   * @return true once a minute
   */
  public boolean allows() {
    long now = nanoClock.getAsLong();
    long next = nextNanos.get();
    return now - next >= 0 && nextNanos.compareAndSet(next, now + QUIET_NANOS);
  }
}

package io.trunkline.hadoop.ucx;

/**
 * How long a leader spins before it sleeps. Spins that pay make the next ones longer, up to a
 * limit; spins that do not soon cost next to nothing, as on a machine whose cores are all in use.
 */
final class Spin {
  private static final int FULL = 8;
  private static final int TRY_EVERY = 16;

  private final long mostNanos;
  private int credit = FULL;
  private int skipped;

  Spin(long mostNanos) {
    this.mostNanos = mostNanos;
  }

  /** Length of the next spin. */
  long nanos() {
    if (credit > 0) {
      return mostNanos;
    }
    skipped++;
    if (skipped < TRY_EVERY) {
      return 0;
    }
    skipped = 0;
    return mostNanos;
  }

  /** Something came while spinning. */
  void paid() {
    credit = Math.min(FULL, credit + 1);
  }

  /** Nothing came. */
  void wasted() {
    credit = Math.max(0, credit - 1);
  }
}

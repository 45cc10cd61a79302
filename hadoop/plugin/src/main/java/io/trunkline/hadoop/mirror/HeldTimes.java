package io.trunkline.hadoop.mirror;

import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;

/** How long headers of writes were held so that their connections are reported: a histogram. */
final class HeldTimes {
  /** Microseconds; the last bucket has all that is longer. */
  private static final int[] BOUNDS = {100, 200, 500, 1000, 2000, 5000, 10_000, 50_000};

  private final LongAdder[] counts = new LongAdder[BOUNDS.length + 1];

  HeldTimes() {
    for (int i = 0; i < counts.length; i++) {
      counts[i] = new LongAdder();
    }
  }

  /**
   * A header goes on.
   *
   * @param nanos how long it was held
   */
  void add(long nanos) {
    long micros = TimeUnit.NANOSECONDS.toMicros(nanos);
    int bucket = 0;
    while (bucket < BOUNDS.length && micros > BOUNDS[bucket]) {
      bucket++;
    }
    counts[bucket].increment();
  }

  /** How many were held so long at most, by name; empty where there was none. */
  Map<String, Long> numbers() {
    Map<String, Long> numbers = new TreeMap<>();
    long count = 0;
    for (int i = 0; i < counts.length; i++) {
      count += counts[i].sum();
      numbers.put("mirror_held_us_" + (i < BOUNDS.length ? BOUNDS[i] : "any"), count);
    }
    return count == 0 ? Map.of() : numbers;
  }
}

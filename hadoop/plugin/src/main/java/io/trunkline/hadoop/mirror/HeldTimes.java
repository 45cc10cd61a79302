package io.trunkline.hadoop.mirror;

import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.metrics2.util.Quantile;
import org.apache.hadoop.metrics2.util.SampleQuantiles;

/** How long headers of writes were held so that their connections are reported: median and p99. */
final class HeldTimes {
  private static final Quantile MEDIAN = new Quantile(0.50, 0.050);
  private static final Quantile P99 = new Quantile(0.99, 0.001);

  private final SampleQuantiles samples = new SampleQuantiles(new Quantile[] {MEDIAN, P99});

  /**
   * A header goes on.
   *
   * @param nanos how long it was held
   */
  void add(long nanos) {
    samples.insert(TimeUnit.NANOSECONDS.toMicros(nanos));
  }

  /** Of all so far in microseconds, by name; empty where there was none. */
  Map<String, Long> numbers() {
    Map<String, Long> numbers = new TreeMap<>();
    Map<Quantile, Long> found = samples.snapshot();
    if (found != null) {
      numbers.put("mirror_held_us_p50", found.get(MEDIAN));
      numbers.put("mirror_held_us_p99", found.get(P99));
    }
    return numbers;
  }
}

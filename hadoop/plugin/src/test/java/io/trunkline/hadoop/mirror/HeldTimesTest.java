package io.trunkline.hadoop.mirror;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class HeldTimesTest {
  @Test
  void eachBucketHasWhatIsShorterToo() {
    HeldTimes held = new HeldTimes();
    assertEquals(Map.of(), held.numbers());
    for (long micros : new long[] {0, 100, 101, 2000, 60_000}) {
      held.add(TimeUnit.MICROSECONDS.toNanos(micros));
    }
    Map<String, Long> numbers = held.numbers();
    assertEquals(2, numbers.get("mirror_held_us_100"));
    assertEquals(3, numbers.get("mirror_held_us_1000"));
    assertEquals(4, numbers.get("mirror_held_us_2000"));
    assertEquals(4, numbers.get("mirror_held_us_50000"));
    assertEquals(5, numbers.get("mirror_held_us_any"));
  }
}

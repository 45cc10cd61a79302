package io.trunkline.hadoop.mirror;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class HeldTimesTest {
  @Test
  void medianAndP99OfAllSoFar() {
    HeldTimes held = new HeldTimes();
    assertEquals(Map.of(), held.numbers());
    for (int i = 1; i <= 1000; i++) {
      held.add(TimeUnit.MICROSECONDS.toNanos(i));
    }
    Map<String, Long> numbers = held.numbers();
    assertEquals(500, numbers.get("mirror_held_us_p50"), 50);
    assertEquals(990, numbers.get("mirror_held_us_p99"), 1);
  }
}

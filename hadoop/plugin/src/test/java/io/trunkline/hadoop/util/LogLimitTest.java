package io.trunkline.hadoop.util;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class LogLimitTest {
  @Test
  void oneLineAMinute() {
    AtomicLong clock = new AtomicLong(Long.MAX_VALUE - 5); // which passes its end on the way
    LogLimit lines = new LogLimit(clock::get);
    for (int minute = 0; minute < 3; minute++) {
      assertTrue(lines.allows());
      assertFalse(lines.allows());
      clock.addAndGet(TimeUnit.SECONDS.toNanos(60) - 1);
      assertFalse(lines.allows());
      clock.incrementAndGet();
    }
  }
}

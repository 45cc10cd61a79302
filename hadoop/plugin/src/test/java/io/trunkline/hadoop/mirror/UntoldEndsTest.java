package io.trunkline.hadoop.mirror;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.mirror.UntoldEnds.Ended;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** What is kept of pipelines that have ended while the controller was away. */
class UntoldEndsTest {
  private final AtomicLong clock = new AtomicLong(Long.MAX_VALUE - 5);
  private final UntoldEnds ends = new UntoldEnds(clock::get);

  private Ended ended(String id, long inNanos) {
    return new Ended(id, clock.get() + inNanos);
  }

  @Test
  void theOldestIsToldFirstAndEachOnce() {
    Ended a = ended("a", 100);
    Ended b = ended("b", 200);
    ends.add(a);
    ends.add(b);
    ends.add(a);
    assertEquals(a, ends.take());
    assertEquals(b, ends.take());
    assertNull(ends.take());
    assertTrue(ends.isEmpty());
  }

  @Test
  void whatALeaseHasEndedIsForgotten() {
    ends.add(ended("over", 10));
    ends.add(ended("not over", 11));
    clock.addAndGet(10);
    assertEquals("not over", ends.take().id());
    assertTrue(ends.isEmpty());
  }

  @Test
  void whereThereAreTooManyTheOldestIsForgotten() {
    for (int i = 0; i <= UntoldEnds.MAX; i++) {
      ends.add(ended("" + i, 100));
    }
    assertEquals("1", ends.take().id());
  }
}

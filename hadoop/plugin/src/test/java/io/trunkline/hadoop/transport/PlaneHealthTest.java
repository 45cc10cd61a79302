package io.trunkline.hadoop.transport;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import io.trunkline.hadoop.transport.PlaneHealth.Failure;
import io.trunkline.hadoop.transport.PlaneHealth.Pause;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

class PlaneHealthTest {
  private final AtomicLong clock = new AtomicLong(-5);
  private final PlaneHealth health = new PlaneHealth(clock::get);

  private void pass(long milliseconds) {
    clock.addAndGet(TimeUnit.MILLISECONDS.toNanos(milliseconds));
  }

  @Test
  void aSubjectIsPausedForLongerEachTime() {
    assertNull(health.paused("a"));
    assertEquals(new Pause(5000, true), health.failed("a", Failure.SILENT, "no answer"));
    pass(1000);
    assertEquals(
        new Pause(4000, false), health.failed("a", Failure.SILENT, "no answer to a second one"));
    assertEquals("no answer", health.paused("a"));
    health.succeeded("a");
    assertEquals("no answer", health.paused("a"), "it began before the pause");
    pass(5001);
    assertNull(health.paused("a"));
    assertEquals(new Pause(10_000, true), health.failed("a", Failure.SILENT, "again"));
    pass(10_001);
    health.succeeded("a");
    assertEquals(new Pause(5000, true), health.failed("a", Failure.SILENT, "much later"));
  }

  @Test
  void oneBadSubjectLeavesTheOthersAlone() {
    for (int i = 0; i < 20; i++) {
      health.failed("a", Failure.SILENT, "no answer");
      pass(100_000);
      health.failed("a", Failure.BAD, "damaged");
    }
    assertEquals("damaged", health.paused("a"));
    assertNull(health.paused("b"));
  }

  @Test
  void badAnswersPauseNobodyElseHoweverMany() {
    for (int i = 0; i < 100; i++) {
      health.failed("block " + i, Failure.BAD, "damaged");
    }
    assertNull(health.paused("another"));
  }

  @Test
  void severalInARowWithoutAnAnswerPauseAll() {
    health.failed("a", Failure.SILENT, "no answer");
    health.failed("b", Failure.SILENT, "no answer");
    health.succeeded("c");
    health.failed("d", Failure.SILENT, "no answer");
    health.failed("e", Failure.SILENT, "no answer");
    assertNull(health.paused("another"), "one answered in between");
    health.failed("f", Failure.SILENT, "nobody answers");
    assertEquals("nobody answers", health.paused("another"));
    pass(5001);
    assertNull(health.paused("another"));
  }

  @Test
  void whatIsRememberedHasABound() {
    for (int i = 0; i < 100_000; i++) {
      health.failed("block " + i, Failure.BAD, "damaged");
    }
    assertNull(health.paused("block 0"));
    assertEquals("damaged", health.paused("block 99999"));
  }
}

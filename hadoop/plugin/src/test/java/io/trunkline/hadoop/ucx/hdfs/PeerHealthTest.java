package io.trunkline.hadoop.ucx.hdfs;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.transport.NotServed;
import io.trunkline.hadoop.ucx.Service;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.Test;

/** Whom UCX is not chosen for, and for how long. */
class PeerHealthTest {
  private final AtomicLong clock = new AtomicLong();
  private final PeerHealth health = new PeerHealth(clock::get);

  private void pass(long seconds) {
    clock.addAndGet(TimeUnit.SECONDS.toNanos(seconds));
  }

  private void assertRefused(String peer, String why) {
    NotServed refused = assertThrows(NotServed.class, () -> health.check(peer));
    assertEquals(Fallback.PLANE_PAUSED, refused.reason());
    assertEquals(why, refused.getMessage());
  }

  private void assertServed(String peer) {
    assertDoesNotThrow(() -> health.check(peer));
  }

  @Test
  void aDataNodeThatIsLostIsLeftAloneForAGrowingWhile() {
    long before = TransferStats.get().value(Counter.UCX_LOST);
    health.ended("a", Service.LOST, "reset");
    assertRefused("a", "lost: reset");
    assertServed("b");
    pass(6);
    assertServed("a");
    health.ended("a", Service.LOST, "reset again");
    pass(6);
    assertRefused("a", "lost: reset again");
    pass(6);
    health.ended("a", Service.CARRIED, "");
    health.ended("a", Service.LOST, "much later");
    pass(6);
    assertServed("a");
    assertEquals(3, TransferStats.get().value(Counter.UCX_LOST) - before);
  }

  @Test
  void brokenConnectionsToManySayNothingOfTheOthers() {
    for (String peer : new String[] {"a", "b", "c", "d"}) {
      health.ended(peer, Service.LOST, "reset");
    }
    assertServed("e");
  }

  @Test
  void whereSeveralInARowDoNotAnswerNobodyIsTried() {
    health.ended("a", Service.SILENT, "");
    health.ended("b", Service.SILENT, "");
    health.ended("c", Service.CARRIED, "");
    health.ended("d", Service.SILENT, "");
    health.ended("e", Service.SILENT, "");
    assertServed("f");
    health.ended("f", Service.SILENT, "");
    assertRefused("g", "no answer in time");
    pass(6);
    assertServed("g");
  }

  @Test
  void aPeerThatEndedInOrderHasNotFailed() {
    health.ended("a", Service.UNKNOWN, "has ended");
    assertServed("a");
  }
}

package io.trunkline.hadoop.transport;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

class DiscoveryTest {
  private static final InetSocketAddress TRANSFER = new InetSocketAddress("127.0.0.5", 9866);

  private final AtomicLong clock = new AtomicLong(Long.MAX_VALUE - 1000);
  private final List<InetSocketAddress> asked = new ArrayList<>();
  private final AtomicReference<byte[]> answer = new AtomicReference<>();
  private final Discovery discovery =
      new Discovery(
          dataNode -> {
            asked.add(dataNode);
            if (answer.get() == null) {
              throw new IOException("no answer");
            }
            return answer.get();
          },
          clock::get);

  private void pass(long millis) {
    clock.addAndGet(TimeUnit.MILLISECONDS.toNanos(millis));
  }

  @Test
  void aDataNodeWithThePluginIsAskedOnce() {
    answer.set(new DataNodeRecord(true, "", 4567, "").encode());
    for (int i = 0; i < 10; i++) {
      Discovery.Route route = discovery.route(TRANSFER);
      assertEquals(new InetSocketAddress("127.0.0.5", 4567), route.plugin());
      assertTrue(route.found());
    }
    assertEquals(List.of(TRANSFER), asked);
    pass(31_000);
    discovery.route(TRANSFER);
    assertEquals(2, asked.size());
  }

  @Test
  void itsPluginMayListenElsewhere() {
    answer.set(new DataNodeRecord(true, "127.0.0.9", 4567, "").encode());
    assertEquals(new InetSocketAddress("127.0.0.9", 4567), discovery.route(TRANSFER).plugin());
  }

  @Test
  void refusalIsFoundWithItsReason() {
    answer.set(new DataNodeRecord(false, "", 0, "tokens are on").encode());
    Discovery.Route route = discovery.route(TRANSFER);
    assertTrue(route.found());
    assertNull(route.plugin());
    assertEquals("tokens are on", route.reason());
  }

  @Test
  void silenceIsRememberedForLongerEachTime() {
    assertFalse(discovery.route(TRANSFER).found());
    discovery.route(TRANSFER);
    assertEquals(1, asked.size());
    pass(1001);
    discovery.route(TRANSFER);
    assertEquals(2, asked.size());
    pass(1001);
    discovery.route(TRANSFER);
    assertEquals(2, asked.size());
    pass(1001);
    discovery.route(TRANSFER);
    assertEquals(3, asked.size());
    for (int i = 0; i < 40; i++) {
      pass(TimeUnit.HOURS.toMillis(1));
      discovery.route(TRANSFER);
    }
    assertEquals(43, asked.size());
    pass(63_000);
    discovery.route(TRANSFER);
    assertEquals(43, asked.size());
  }

  @Test
  void forgottenOnesAreAskedAgain() {
    answer.set(new DataNodeRecord(true, "", 4567, "").encode());
    discovery.route(TRANSFER);
    discovery.forget(TRANSFER);
    answer.set(new DataNodeRecord(true, "", 4568, "").encode());
    assertEquals(4568, discovery.route(TRANSFER).plugin().getPort());
  }

  /** A firewall may let questions through, and no connections. */
  @Test
  void oneThatTakesNoConnectionIsLeftAloneForLongerEachTimeUntilItTakesOne() {
    answer.set(new DataNodeRecord(true, "", 4567, "").encode());
    for (int pauseMs = 1000; pauseMs <= 64_000; pauseMs *= 2) {
      assertTrue(discovery.route(TRANSFER).found());
      discovery.forget(TRANSFER);
      assertTrue(discovery.route(TRANSFER).found());
      discovery.lost(TRANSFER, "refused");
      pass(pauseMs - 1);
      assertEquals("refused", discovery.route(TRANSFER).reason());
      pass(2);
    }
    discovery.route(TRANSFER);
    discovery.reached(TRANSFER);
    discovery.lost(TRANSFER, "refused again");
    pass(1001);
    assertTrue(discovery.route(TRANSFER).found());
  }

  @Test
  void addressesAreInFiguresAndNeverLookedUp() throws IOException {
    for (String address : new String[] {"", "10.0.0.7", "fe80::1%eth0", "::ffff:10.0.0.7"}) {
      DataNodeRecord record = new DataNodeRecord(true, address, 4567, "");
      assertEquals(record, DataNodeRecord.decode(record.encode()));
    }
    for (String name : new String[] {"example.org", "localhost", "10.0.0", "deadbeef", "a b:c"}) {
      byte[] record = new DataNodeRecord(true, name, 4567, "").encode();
      assertThrows(IOException.class, () -> DataNodeRecord.decode(record), name);
    }
  }

  @Test
  void nonsenseCountsAsSilence() {
    for (String nonsense :
        new String[] {
          "", "[]", "{", "{\"served\":true,\"port\":0}", "{\"served\":true,\"port\":70000}"
        }) {
      answer.set(nonsense.getBytes());
      discovery.forget(TRANSFER);
      Discovery.Route route = discovery.route(TRANSFER);
      assertNull(route.plugin(), nonsense);
      assertFalse(route.found(), nonsense);
    }
    assertThrows(IOException.class, () -> DataNodeRecord.decode(new byte[5000]));
  }

  @Test
  void aDeadPlaneIsPausedForLongerEachTime() {
    PlaneHealth health = new PlaneHealth(clock::get);
    assertTrue(health.good());
    assertEquals(5000, health.failed("no answer"));
    health.failed("no answer to a second one");
    assertFalse(health.good());
    assertEquals("no answer", health.cause());
    health.succeeded();
    assertFalse(health.good());
    pass(5001);
    assertTrue(health.good());
    assertEquals(10_000, health.failed("again"));
    pass(10_001);
    health.succeeded();
    assertEquals(5000, health.failed("much later"));
  }
}

package io.trunkline.hadoop.transport;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.transport.Discovery.Outcome;
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
  private final AtomicReference<byte[]> past = new AtomicReference<>();
  private final Discovery discovery =
      new Discovery(
          new Discovery.Question() {
            @Override
            public DataNodeRecord ask(InetSocketAddress dataNode) throws IOException {
              asked.add(dataNode);
              if (answer.get() == null) {
                throw new IOException("no answer");
              }
              return DataNodeRecord.decode(answer.get());
            }

            @Override
            public DataNodeRecord askPast(InetSocketAddress dataNode) throws IOException {
              return past.get() == null ? null : DataNodeRecord.decode(past.get());
            }
          },
          1,
          clock::get);

  private void pass(long millis) {
    clock.addAndGet(TimeUnit.MILLISECONDS.toNanos(millis));
  }

  @Test
  void aDataNodeWithThePluginIsAskedOnce() {
    answer.set(new DataNodeRecord(1, true, "", 4567, "").encode());
    for (int i = 0; i < 10; i++) {
      Discovery.Route route = discovery.route(TRANSFER);
      assertEquals(new InetSocketAddress("127.0.0.5", 4567), route.plugin());
      assertEquals(Outcome.SERVED, route.outcome());
    }
    assertEquals(List.of(TRANSFER), asked);
    pass(31_000);
    discovery.route(TRANSFER);
    assertEquals(2, asked.size());
  }

  /** Nobody is sent to another host, whoever has answered for the DataNode. */
  @Test
  void anAnswerThatNamesAnotherHostIsRefused() {
    InetSocketAddress transfer = new InetSocketAddress("10.0.0.5", 9866);
    answer.set(new DataNodeRecord(1, true, "10.0.0.66", 4567, "").encode());
    Discovery.Route route = discovery.route(transfer);
    assertEquals(Outcome.OTHER_HOST, route.outcome());
    assertNull(route.plugin());
    assertTrue(route.reason().contains("10.0.0.66"), route.reason());
    for (String stranger : new String[] {"127.0.0.1", "::1", "fe80::1%nowhere", "0.0.0.0"}) {
      pass(TimeUnit.HOURS.toMillis(1));
      answer.set(new DataNodeRecord(1, true, stranger, 4567, "").encode());
      assertEquals(Outcome.OTHER_HOST, discovery.route(transfer).outcome(), stranger);
    }
    pass(TimeUnit.HOURS.toMillis(1));
    answer.set(new DataNodeRecord(1, true, "10.0.0.5", 4567, "").encode());
    assertEquals(new InetSocketAddress("10.0.0.5", 4567), discovery.route(transfer).plugin());
  }

  /** Whoever is first to answer for a DataNode does not keep its data off the plug-in. */
  @Test
  void whatLeadsNowhereIsAskedPast() {
    past.set(new DataNodeRecord(1, true, "", 4567, "").encode());
    for (DataNodeRecord forged :
        List.of(
            new DataNodeRecord(1, false, "", 0, "none here"),
            new DataNodeRecord(2, true, "", 4567, ""),
            new DataNodeRecord(1, true, "10.0.0.66", 4567, ""))) {
      pass(TimeUnit.HOURS.toMillis(1));
      answer.set(forged.encode());
      assertEquals(Outcome.SERVED, discovery.route(TRANSFER).outcome(), forged.toString());
    }
    // A port at which nobody is, told again when it is asked for again.
    pass(TimeUnit.HOURS.toMillis(1));
    answer.set(new DataNodeRecord(1, true, "", 6666, "").encode());
    assertEquals(6666, discovery.route(TRANSFER).plugin().getPort());
    discovery.forget(TRANSFER, discovery.route(TRANSFER));
    assertEquals(4567, discovery.route(TRANSFER).plugin().getPort());
    // Once it has been reached there it is believed, and nobody else is asked.
    discovery.reached(TRANSFER);
    pass(TimeUnit.HOURS.toMillis(1));
    assertEquals(6666, discovery.route(TRANSFER).plugin().getPort());
  }

  /** Who asks with a block token knows that the DataNode takes one. */
  @Test
  void whatCanNotBeRightIsAskedPastOnceForAWhile() {
    answer.set(new DataNodeRecord(1, true, "", 4567, "", false).encode());
    past.set(new DataNodeRecord(1, true, "", 4567, "", true).encode());
    Discovery.Route forged = discovery.route(TRANSFER);
    assertFalse(forged.secured());
    assertTrue(discovery.insteadOf(TRANSFER, forged).secured());
    assertTrue(discovery.route(TRANSFER).secured());
    // It may be right all the same.
    past.set(null);
    pass(31_000);
    for (int i = 0; i < 3; i++) {
      Discovery.Route route = discovery.route(TRANSFER);
      assertEquals(forged, discovery.insteadOf(TRANSFER, route));
    }
    assertEquals(3, asked.size());
  }

  @Test
  void aRefusalThatNobodyContradictsHolds() {
    answer.set(new DataNodeRecord(1, false, "", 0, "none here").encode());
    for (byte[] other : new byte[][] {null, answer.get(), "no record".getBytes()}) {
      past.set(other);
      Discovery.Route route = discovery.route(TRANSFER);
      assertEquals(Outcome.REFUSED, route.outcome());
      assertEquals("none here", route.reason());
      pass(31_000);
    }
  }

  @Test
  void loopbackAddressesAreOneHost() {
    answer.set(new DataNodeRecord(1, true, "127.0.0.1", 4567, "").encode());
    assertEquals(new InetSocketAddress("127.0.0.1", 4567), discovery.route(TRANSFER).plugin());
  }

  /** A DataNode with a newer plug-in is healthy: its data goes by TCP. */
  @Test
  void aPluginOfAnotherVersionIsLeftToTcp() {
    answer.set(new DataNodeRecord(2, true, "", 4567, "").encode());
    Discovery.Route route = discovery.route(TRANSFER);
    assertEquals(Outcome.OTHER_VERSION, route.outcome());
    assertNull(route.plugin());
    discovery.forget(TRANSFER, discovery.route(TRANSFER));
    answer.set("{\"served\":true,\"address\":\"\",\"port\":4567}".getBytes());
    assertEquals(Outcome.SERVED, discovery.route(TRANSFER).outcome(), "1 where none is said");
  }

  @Test
  void aReasonIsOneLineOfTheLog() throws IOException {
    byte[] record = new DataNodeRecord(1, false, "", 0, "a\nWARN b\u001b[2J").encode();
    assertEquals("a WARN b [2J", DataNodeRecord.decode(record).reason());
  }

  @Test
  void refusalIsFoundWithItsReason() {
    answer.set(new DataNodeRecord(1, false, "", 0, "tokens are on").encode());
    Discovery.Route route = discovery.route(TRANSFER);
    assertEquals(Outcome.REFUSED, route.outcome());
    assertNull(route.plugin());
    assertEquals("tokens are on", route.reason());
  }

  @Test
  void silenceIsRememberedForLongerEachTime() {
    assertEquals(Outcome.SILENT, discovery.route(TRANSFER).outcome());
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
    answer.set(new DataNodeRecord(1, true, "", 4567, "").encode());
    discovery.route(TRANSFER);
    discovery.forget(TRANSFER, discovery.route(TRANSFER));
    answer.set(new DataNodeRecord(1, true, "", 4568, "").encode());
    assertEquals(4568, discovery.route(TRANSFER).plugin().getPort());
  }

  /** A firewall may let questions through, and no connections. */
  @Test
  void oneThatTakesNoConnectionIsLeftAloneForLongerEachTimeUntilItTakesOne() {
    answer.set(new DataNodeRecord(1, true, "", 4567, "").encode());
    for (int pauseMs = 1000; pauseMs <= 64_000; pauseMs *= 2) {
      assertEquals(Outcome.SERVED, discovery.route(TRANSFER).outcome());
      discovery.forget(TRANSFER, discovery.route(TRANSFER));
      assertEquals(Outcome.SERVED, discovery.route(TRANSFER).outcome());
      discovery.lost(TRANSFER, "refused");
      pass(pauseMs - 1);
      assertEquals("refused", discovery.route(TRANSFER).reason());
      pass(2);
    }
    discovery.route(TRANSFER);
    discovery.reached(TRANSFER);
    discovery.lost(TRANSFER, "refused again");
    pass(1001);
    assertEquals(Outcome.SERVED, discovery.route(TRANSFER).outcome());
  }

  @Test
  void addressesAreInFiguresAndNeverLookedUp() throws IOException {
    for (String address : new String[] {"", "10.0.0.7", "fe80::1%eth0", "::ffff:10.0.0.7"}) {
      DataNodeRecord record = new DataNodeRecord(1, true, address, 4567, "");
      assertEquals(record, DataNodeRecord.decode(record.encode()));
    }
    for (String name : new String[] {"example.org", "localhost", "10.0.0", "deadbeef", "a b:c"}) {
      byte[] record = new DataNodeRecord(1, true, name, 4567, "").encode();
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
      discovery.forget(TRANSFER, discovery.route(TRANSFER));
      Discovery.Route route = discovery.route(TRANSFER);
      assertNull(route.plugin(), nonsense);
      assertEquals(Outcome.SILENT, route.outcome(), nonsense);
    }
    assertThrows(IOException.class, () -> DataNodeRecord.decode(new byte[5000]));
  }
}

package io.trunkline.hadoop.ndn.hdfs;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.tap.TapConnection;
import io.trunkline.hadoop.transport.PlaneHealth;
import java.io.IOException;
import java.net.InetSocketAddress;
import org.apache.hadoop.hdfs.protocol.datatransfer.InvalidEncryptionKeyException;
import org.junit.jupiter.api.Test;

/** What becomes of a connection to a plug-in that carries no write by name. */
class StockExitTest {
  private static final String PEER = "10.0.0.1:9866";

  private final TransferStats stats = TransferStats.get();
  private final PlaneHealth health = new PlaneHealth(System::nanoTime);
  private int moved;

  private final TapConnection connection =
      new TapConnection() {
        @Override
        public InetSocketAddress local() {
          throw new AssertionError();
        }

        @Override
        public InetSocketAddress remote() {
          throw new AssertionError();
        }

        @Override
        public void moveTo(Connector other) {
          moved++;
        }

        @Override
        public void send(Refill refill) {
          throw new AssertionError("nothing is sent");
        }
      };

  private StockExit exit(boolean secured, boolean trusted) {
    return new StockExit(() -> null, secured, () -> trusted, health, PEER);
  }

  @Test
  void whatIsProtectedByStockCodeGoesToTheStockPort() throws IOException {
    exit(false, false).leave(connection, true);
    exit(false, false).leave(connection, false);
    exit(true, false).leave(connection, true);
    assertEquals(3, moved);
    assertNull(health.paused(PEER));
    long before = stats.fallbacks(Fallback.NO_RESOLVER);
    exit(true, false).leave(connection, false);
    assertEquals(4, moved);
    assertEquals(before + 1, stats.fallbacks(Fallback.NO_RESOLVER));
  }

  /** Its writer connects again upon this, to the stock port then, where it does its handshake. */
  @Test
  void whatStockCodeDoesNotProtectAnyMoreGoesNowhere() {
    for (boolean write : new boolean[] {true, false}) {
      IOException refused =
          assertThrows(
              InvalidEncryptionKeyException.class, () -> exit(true, true).leave(connection, write));
      assertTrue(refused.getMessage().contains(PEER), refused.getMessage());
    }
    assertEquals(0, moved);
    assertNotNull(health.paused(PEER));
  }
}

package io.trunkline.hadoop.ndn.datanode;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.ndn.Names;
import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.ndn.wire.SecureHello;
import io.trunkline.hadoop.transport.PeerHandoff;
import io.trunkline.hadoop.transport.XceiverStarter;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.channels.Channels;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.hdfs.net.BasicInetPeer;
import org.apache.hadoop.hdfs.net.Peer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What connections to the plug-in's port may do to it. */
@Timeout(60)
class StrangersTest {
  private static final InetSocketAddress ANY =
      new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);

  /** A byte every 20 seconds keeps any read timeout from passing; returns how many were read. */
  private static int readsBeforeItIsLeft(byte[] wire, NamedInput.Security security) {
    AtomicLong now = new AtomicLong(Long.MAX_VALUE - 5);
    AtomicInteger reads = new AtomicInteger();
    InputStream slow =
        new ByteArrayInputStream(wire) {
          @Override
          public synchronized int read(byte[] to, int off, int length) {
            now.addAndGet(TimeUnit.SECONDS.toNanos(20));
            reads.incrementAndGet();
            return super.read(to, off, 1);
          }
        };
    NamedInput in =
        new NamedInput(
            new ControlInput(slow, Channels.newChannel(InputStream.nullInputStream())),
            new Names("/hadoop"),
            (op, preamble, control) -> {
              throw new AssertionError("no write");
            },
            new NamedInput.Answers() {
              @Override
              public void begin() {}

              @Override
              public void ask(long seqno) {}
            },
            security,
            now::get);
    assertThrows(SocketTimeoutException.class, in::read);
    return reads.get();
  }

  @Test
  void aPeerThatNeverComesToThePointIsLeft() {
    byte[] wire = new Preamble("/hadoop/blocks/" + "x".repeat(900), 1, 512).encode();
    assertEquals(3, readsBeforeItIsLeft(wire, new Handshakes(null, null, null, null, () -> {})));
  }

  /** Whom nothing is known of has less time. */
  @Test
  void aPeerThatNeverEndsItsHandshakeIsLeftSooner() {
    byte[] wire = new SecureHello(new byte[4000], "a:1", new byte[48]).encode();
    BlockTokens tokens = BlockTokensTest.of(BlockTokensTest.keys(false));
    assertEquals(1, readsBeforeItIsLeft(wire, new Handshakes(tokens, null, null, null, () -> {})));
  }

  /** Neither a refused connection nor a lack of threads ends the listener or makes others wait. */
  @Test
  void theListenerOutlivesWhatGoesWrong() throws Exception {
    BlockingQueue<Peer> served = new LinkedBlockingQueue<>();
    AtomicInteger calls = new AtomicInteger();
    XceiverStarter xceivers =
        peer -> {
          int call = calls.getAndIncrement();
          if (call == 0) {
            throw new OutOfMemoryError("unable to create native thread");
          } else if (call <= 100) {
            throw new IOException("too many xceivers");
          }
          served.add(peer);
        };
    try (Acceptor acceptor =
        new Acceptor(ANY, c -> new BasicInetPeer(c.socket()), new PeerHandoff("ndn", xceivers))) {
      long start = System.nanoTime();
      for (int i = 0; i <= 100; i++) {
        try (Socket refused = new Socket()) {
          refused.connect(acceptor.address());
          assertEquals(-1, refused.getInputStream().read());
        }
      }
      try (Socket taken = new Socket()) {
        taken.connect(acceptor.address());
        Peer peer = served.poll(10, TimeUnit.SECONDS);
        assertTrue(peer != null, "the one after them is served");
        peer.close();
      }
      long tookMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
      assertTrue(tookMs < 5000, "refusals do not hold up the others: " + tookMs + " ms");
    }
  }
}

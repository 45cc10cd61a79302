package io.trunkline.hadoop.ndn.secure;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.library.NativeLibrary;
import io.trunkline.hadoop.ndn.wire.Welcome;
import io.trunkline.hadoop.tap.PassThrough;
import io.trunkline.hadoop.tap.TapChannel;
import io.trunkline.hadoop.tap.TapConnection;
import io.trunkline.hadoop.tap.TapListener;
import io.trunkline.hadoop.tap.TapOutput;
import io.trunkline.hadoop.tap.WriteHandler;
import io.trunkline.hadoop.wire.WriteOp;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Records between a tap and its connection, as stock code writes and reads: without waiting. */
@Timeout(60)
class SealedWireTest {
  private static final TapListener ALL_PASSES =
      new TapListener() {
        @Override
        public WriteHandler write(WriteOp op, TapConnection connection, TapOutput out) {
          return PassThrough.INSTANCE;
        }

        @Override
        public void other(TapConnection connection) {}
      };

  private SocketChannel near;
  private SocketChannel far;
  private SecureSession client;
  private SecureSession server;

  @BeforeEach
  void connect() throws IOException {
    NativeLibrary.load(Settings.from(new Configuration(false)).nativeLibrary());
    try (ServerSocketChannel listener = ServerSocketChannel.open()) {
      listener.setOption(StandardSocketOptions.SO_RCVBUF, 8192);
      listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
      near = SocketChannel.open();
      near.setOption(StandardSocketOptions.SO_SNDBUF, 8192);
      near.connect(listener.getLocalAddress());
      far = listener.accept();
    }
    byte[] password = {1, 2, 3};
    Welcome welcome = Welcome.draw();
    client = SecureSession.client(welcome, password, new byte[] {4}, "a:1");
    server = SecureSession.server(welcome, password, new byte[] {4}, "a:1");
    server.hear(client.say());
    client.hear(server.say());
  }

  @AfterEach
  void close() throws IOException {
    near.close();
    far.close();
    client.close();
    server.close();
  }

  private static TapChannel tap(SocketChannel channel, SecureSession session) throws IOException {
    TapChannel tap = new TapChannel(null, channel, new SealedWire(session), ALL_PASSES);
    tap.configureBlocking(false);
    return tap;
  }

  private static void send(TapChannel tap, byte[] bytes, boolean direct) throws IOException {
    ByteBuffer all =
        direct ? ByteBuffer.allocateDirect(bytes.length) : ByteBuffer.allocate(bytes.length);
    all.put(bytes).flip();
    try (Selector selector = tap.provider().openSelector()) {
      tap.register(selector, SelectionKey.OP_WRITE);
      while (all.hasRemaining()) {
        int before = all.position();
        assertEquals(tap.write(all), all.position() - before);
        selector.select(1000);
        selector.selectedKeys().clear();
      }
    }
  }

  private static byte[] receive(TapChannel tap, int length, Random random) throws IOException {
    ByteBuffer all = ByteBuffer.allocate(length);
    try (Selector selector = tap.provider().openSelector()) {
      tap.register(selector, SelectionKey.OP_READ);
      while (all.hasRemaining()) {
        // What has come in a record and was not taken makes nobody wait.
        assertTrue(selector.select(20_000) > 0, all + " have come");
        selector.selectedKeys().clear();
        int part = Math.min(all.remaining(), 1 + random.nextInt(5000));
        ByteBuffer some = ByteBuffer.allocate(part);
        assertTrue(tap.read(some) >= 0);
        all.put(some.flip());
      }
    }
    return all.array();
  }

  @Test
  void allComesThroughHoweverLittleTheConnectionTakes() throws Exception {
    for (boolean direct : new boolean[] {false, true}) {
      close();
      connect();
      Random random = new Random(5);
      byte[] bytes = new byte[3_000_000];
      random.nextBytes(bytes);
      bytes[0] = (byte) 0xDE;
      try (TapChannel sender = tap(near, client);
          TapChannel receiver = tap(far, server)) {
        CompletableFuture<Void> sent =
            CompletableFuture.runAsync(
                () -> {
                  try {
                    send(sender, bytes, direct);
                  } catch (IOException e) {
                    throw new IllegalStateException(e);
                  }
                });
        assertArrayEquals(bytes, receive(receiver, bytes.length, random));
        sent.get(20, TimeUnit.SECONDS);
      }
    }
  }

  /** What has not gone out whole was not written. */
  @Test
  void whatDoesNotGoOutDoesNotCount() throws Exception {
    try (TapChannel sender = tap(near, client)) {
      byte[] bytes = new byte[1 << 20];
      bytes[0] = (byte) 0xDE;
      ByteBuffer all = ByteBuffer.wrap(bytes);
      // The tap is done with what it takes for a header.
      all.limit(10);
      int written = sender.write(all);
      assertEquals(10, written);
      all.limit(bytes.length);
      int count;
      while ((count = sender.write(all)) > 0) {
        written += count;
      }
      int onTheWire = 0;
      ByteBuffer raw = ByteBuffer.allocate(1 << 20);
      far.configureBlocking(false);
      for (int i = 0; i < 20; i++) {
        onTheWire += Math.max(0, far.read(raw.clear()));
        TimeUnit.MILLISECONDS.sleep(20);
      }
      assertTrue(written < bytes.length);
      assertTrue(written <= onTheWire, written + " written, " + onTheWire + " arrived");
    }
  }

  @Test
  void aClosedSessionIsAnError() throws Exception {
    client.close();
    client.close();
    ByteBuffer to = ByteBuffer.allocate(100);
    assertThrows(IOException.class, () -> client.seal(new byte[5], 0, 5, to));
    try (TapChannel sender = tap(near, client)) {
      assertThrows(IOException.class, () -> sender.write(ByteBuffer.wrap(new byte[] {-34, 1})));
    }
  }
}

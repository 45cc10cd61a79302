package io.trunkline.hadoop.library;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.net.SocketInputStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class ShortWaitTest {
  private SocketChannel far;
  private SocketChannel near;
  private SocketInputStream stock;
  private InputStream in;

  @BeforeEach
  void connect() throws IOException {
    NativeLibrary.load("");
    try (ServerSocketChannel server = ServerSocketChannel.open()) {
      server.bind(new InetSocketAddress("127.0.0.1", 0));
      far = SocketChannel.open(server.getLocalAddress());
      near = server.accept();
    }
    stock = new SocketInputStream(near, 20_000);
    in = ShortWait.before(stock, near);
  }

  @AfterEach
  void close() throws IOException {
    far.close();
    near.close();
  }

  @Test
  void whatComesEndsTheWaitAndSoDoesTheEnd() throws Exception {
    assertFalse(new ShortWait().readable(near), "nothing came");
    byte[] got = new byte[4];
    far.write(ByteBuffer.wrap(new byte[] {1, 2}));
    assertTrue(new ShortWait().readable(near));
    assertEquals(2, in.read(got, 1, 3));
    assertArrayEquals(new byte[] {0, 1, 2, 0}, got);
    CompletableFuture<Integer> later =
        CompletableFuture.supplyAsync(
            () -> {
              try {
                return in.read(got, 0, 4);
              } catch (IOException e) {
                throw new IllegalStateException(e);
              }
            });
    Thread.sleep(100); // a selector waits by now
    far.write(ByteBuffer.wrap(new byte[] {7}));
    assertEquals(1, later.get(20, TimeUnit.SECONDS));
    far.shutdownOutput();
    assertTrue(new ShortWait().readable(near));
    assertEquals(-1, in.read(got, 0, 4));
  }

  @Test
  void stockTimeoutsAndInterruptsHold() throws Exception {
    stock.setTimeout(100);
    assertThrows(SocketTimeoutException.class, () -> in.read(new byte[1], 0, 1));
    stock.setTimeout(0);
    CompletableFuture<Throwable> ended = new CompletableFuture<>();
    Thread reader =
        new Thread(
            () -> {
              try {
                in.read(new byte[1], 0, 1);
                ended.complete(null);
              } catch (IOException e) {
                ended.complete(e);
              }
            });
    reader.start();
    Thread.sleep(100);
    reader.interrupt();
    assertInstanceOf(InterruptedIOException.class, ended.get(20, TimeUnit.SECONDS));
    assertTrue(near.isOpen(), "an interrupt closes no connection");
  }

  @Test
  void aClosedConnectionIsSaidToBe() throws IOException {
    near.close();
    assertThrows(ClosedChannelException.class, () -> in.read(new byte[1], 0, 1));
  }
}

package io.trunkline.hadoop.ndn.wire;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.EOFException;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What listens at a port that a record names. */
@Timeout(60)
class WelcomeTest {
  private SocketChannel client;
  private SocketChannel server;

  @BeforeEach
  void connect() throws IOException {
    try (ServerSocketChannel listener = ServerSocketChannel.open()) {
      listener.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
      client = SocketChannel.open(listener.getLocalAddress());
      server = listener.accept();
    }
  }

  @AfterEach
  void close() throws IOException {
    client.close();
    server.close();
  }

  @Test
  void aPluginIsKnownByIt() throws IOException {
    client.socket().setSoTimeout(1234);
    Welcome sent = Welcome.draw();
    sent.send(server);
    server.write(ByteBuffer.wrap(new byte[] {42}));
    assertEquals(sent.encode(), Welcome.await(client, 20_000).encode());
    assertEquals(1234, client.socket().getSoTimeout());
    ByteBuffer next = ByteBuffer.allocate(2);
    assertEquals(1, client.read(next), "nothing more was read");
    assertEquals(42, next.get(0));
  }

  @Test
  void othersAreNot() throws IOException {
    server.write(ByteBuffer.wrap("SSH-2.0-OpenSSH_9.2\r\n".getBytes()));
    assertThrows(IOException.class, () -> Welcome.await(client, 20_000));
  }

  @Test
  void nobodyWaitsForOneThatIsSilent() {
    assertThrows(SocketTimeoutException.class, () -> Welcome.await(client, 20));
  }

  @Test
  void norForOneThatCloses() throws IOException {
    server.write(Welcome.draw().encode().limit(5));
    server.close();
    assertThrows(EOFException.class, () -> Welcome.await(client, 20_000));
  }

  @Test
  void anotherVersionIsToldApart() throws IOException {
    ByteBuffer other = Welcome.draw().encode().limit(8);
    other.put(4, (byte) (Preamble.VERSION + 1));
    server.write(other);
    IOException e = assertThrows(IOException.class, () -> Welcome.await(client, 20_000));
    assertTrue(e.getMessage().contains("version " + (Preamble.VERSION + 1)), e.getMessage());
  }
}

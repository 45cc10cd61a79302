package io.trunkline.hadoop.transport;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.TrunklineTrustedChannelResolver;
import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.mark.SocketMark;
import io.trunkline.hadoop.stats.Fallback;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.channels.SocketChannel;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.protocol.datatransfer.TrustedChannelResolver;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Which connections stock code is told to trust, as it asks. */
@Timeout(60)
class SecuredConnectionTest {
  private enum Way {
    SECURED,
    AS_IT_IS,
    NOT_SERVED,
    /** It was made secure, and yet the next transport is tried. */
    GIVEN_UP
  }

  private final Settings settings = Settings.from(new Configuration(false));
  private final TrustedChannelResolver resolver = new TrunklineTrustedChannelResolver();
  private final Way[] way = {Way.SECURED};
  private ServerSocket server;
  private InetSocketAddress target;
  private BooleanSupplier told;

  @BeforeEach
  void listen() throws IOException {
    server = new ServerSocket(0, 10, InetAddress.getLoopbackAddress());
    target = (InetSocketAddress) server.getLocalSocketAddress();
  }

  @AfterEach
  void close() throws IOException {
    server.close();
    SecuredConnection.forgetLast();
  }

  /** A transport that does with a connection what the test wants. */
  private final class Named implements Transport {
    @Override
    public String name() {
      return "ndn";
    }

    @Override
    public SocketChannel open(Dial dial) throws NotServed, IOException {
      if (way[0] == Way.NOT_SERVED) {
        throw new NotServed(Fallback.HANDSHAKE, "");
      }
      SocketChannel channel = dial.tcp(dial.dataNode(), 5000);
      if (way[0] != Way.AS_IT_IS) {
        told = dial.secured();
      }
      if (way[0] == Way.GIVEN_UP) {
        throw new NotServed(Fallback.HANDSHAKE, "");
      }
      return channel;
    }

    @Override
    public AutoCloseable serve(DataNode dataNode, XceiverStarter xceivers) {
      throw new AssertionError("not here");
    }
  }

  private Socket connect(Way by) throws IOException {
    way[0] = by;
    TransportChain chain = new TransportChain(settings, List.of(new Named(), new TcpTransport()));
    Socket socket = new LateChannelSocket(chain, null, SocketMark.NONE);
    socket.connect(target, 5000);
    return socket;
  }

  /** As SaslDataTransferClient.checkTrustAndSend asks. */
  private boolean trusted(InetAddress peer) {
    boolean local = resolver.isTrusted();
    boolean remote = resolver.isTrusted(peer);
    return local && remote;
  }

  /** As the method of that name of SaslDataTransferClient asks. */
  private boolean newSocketSend() {
    return resolver.isTrusted();
  }

  @Test
  void aSecuredConnectionIsTrustedOnce() throws IOException {
    try (Socket socket = connect(Way.SECURED)) {
      assertEquals(target.getAddress(), socket.getInetAddress());
      assertEquals(target, socket.getRemoteSocketAddress());
      assertFalse(told.getAsBoolean());
      assertTrue(trusted(socket.getInetAddress()));
      assertTrue(told.getAsBoolean());
      assertFalse(trusted(socket.getInetAddress()));
    }
  }

  @Test
  void anEqualAddressIsNotEnough() throws IOException {
    try (Socket socket = connect(Way.SECURED)) {
      InetAddress equal = InetAddress.getByAddress(socket.getInetAddress().getAddress());
      assertNotSame(equal, socket.getInetAddress());
      assertFalse(trusted(equal));
      assertFalse(trusted(target.getAddress()));
      assertFalse(told.getAsBoolean());
      assertTrue(trusted(socket.getInetAddress()));
    }
  }

  @Test
  void everyConnectForgetsTheOneBefore() throws IOException {
    for (Way other : new Way[] {Way.AS_IT_IS, Way.NOT_SERVED, Way.GIVEN_UP, Way.SECURED}) {
      try (Socket first = connect(Way.SECURED);
          Socket second = connect(other)) {
        assertFalse(trusted(first.getInetAddress()), other + ": the first");
        assertEquals(other == Way.SECURED, resolver.isTrusted(), other.toString());
        assertEquals(other == Way.SECURED, trusted(second.getInetAddress()), other.toString());
      }
    }
  }

  @Test
  void oneThatIsNoDataConnectionForgetsItToo() throws IOException {
    try (Socket first = connect(Way.SECURED);
        Socket rpc = new LateChannelSocket(null, null, SocketMark.NONE)) {
      rpc.connect(target, 5000);
      assertFalse(resolver.isTrusted());
      assertFalse(trusted(first.getInetAddress()));
    }
  }

  @Test
  void oneThatCannotBeMadeForgetsItToo() throws IOException {
    try (Socket first = connect(Way.SECURED)) {
      server.close();
      try (Socket refused = connect(Way.AS_IT_IS)) {
        throw new AssertionError("connected: " + refused);
      } catch (IOException e) {
        assertFalse(trusted(first.getInetAddress()));
      }
    }
  }

  @Test
  void anotherThreadIsToldNothing() throws Exception {
    try (Socket socket = connect(Way.SECURED)) {
      assertFalse(
          CompletableFuture.supplyAsync(() -> trusted(socket.getInetAddress()))
              .get(10, TimeUnit.SECONDS));
      assertTrue(trusted(socket.getInetAddress()));
    }
  }

  @Test
  void whoAsksAloneGetsItsHandshake() throws IOException {
    try (Socket socket = connect(Way.SECURED)) {
      assertTrue(resolver.isTrusted());
      assertFalse(newSocketSend());
    }
  }
}

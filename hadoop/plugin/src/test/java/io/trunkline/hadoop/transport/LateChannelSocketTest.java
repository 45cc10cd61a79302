package io.trunkline.hadoop.transport;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.conf.TrafficCategory;
import io.trunkline.hadoop.mark.SocketMark;
import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.TransferStats;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.net.NetUtils;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** One socket, whichever transport carries it in the end. */
@Timeout(60)
class LateChannelSocketTest {
  private static final InetAddress LOCAL = InetAddress.getLoopbackAddress();

  private final List<String> tried = new ArrayList<>();
  private final Settings settings = Settings.from(new Configuration(false));
  private final TransferStats stats = TransferStats.get();
  private ServerSocket server;
  private InetSocketAddress target;
  private InetSocketAddress nobody;

  @BeforeEach
  void listen() throws IOException {
    server = new ServerSocket(0, 10, LOCAL);
    target = (InetSocketAddress) server.getLocalSocketAddress();
    try (ServerSocket gone = new ServerSocket(0, 1, LOCAL)) {
      nobody = (InetSocketAddress) gone.getLocalSocketAddress();
    }
  }

  @AfterEach
  void close() throws IOException {
    server.close();
  }

  /** Opens a connection in a transport's name. */
  @FunctionalInterface
  private interface Opener {
    SocketChannel open(Dial dial) throws NotServed, IOException;
  }

  private Transport transport(String name, Opener opener) {
    return new Transport() {
      @Override
      public String name() {
        return name;
      }

      @Override
      public SocketChannel open(Dial dial) throws NotServed, IOException {
        tried.add(name);
        return opener.open(dial);
      }

      @Override
      public AutoCloseable serve(DataNode dataNode, XceiverStarter xceivers) {
        throw new AssertionError("no DataNode here");
      }
    };
  }

  private LateChannelSocket socket(Opener first) throws IOException {
    List<Transport> list =
        List.of(transport("ndn", first), transport("tcp", d -> d.tcp(d.dataNode(), d.timeoutMs())));
    return new LateChannelSocket(new TransportChain(settings, list), null, SocketMark.NONE);
  }

  @Test
  void itsChannelIsShownOnceItIsConnected() throws IOException {
    try (Socket socket = new LateChannelSocket(null, LOCAL, SocketMark.NONE)) {
      assertNull(socket.getChannel());
      socket.setSoTimeout(1234);
      assertThrows(IOException.class, socket::getInputStream);
      assertFalse(socket.isConnected());
      NetUtils.connect(socket, target, 1000);
      assertNotNull(socket.getChannel());
      assertEquals(1234, socket.getSoTimeout());
      assertEquals(target.getPort(), socket.getPort());
      assertEquals(LOCAL, socket.getLocalAddress());
      assertTrue(socket.isConnected());
      assertTrue(socket.isBound());
      socket.getOutputStream().write(5);
    }
  }

  @Test
  void whatOneTransportRefusesGoesByTheNext() throws IOException {
    long refused = stats.fallbacks("ndn", Fallback.NO_PLUGIN);
    long opened = stats.connectionsOpened("tcp");
    long openedFirst = stats.connectionsOpened("ndn");
    try (Socket socket =
        socket(
            dial -> {
              throw new NotServed(Fallback.NO_PLUGIN, "nobody there");
            })) {
      NetUtils.connect(socket, target, 1000);
      assertEquals(List.of("ndn", "tcp"), tried);
      assertEquals(target, socket.getRemoteSocketAddress());
    }
    assertEquals(refused + 1, stats.fallbacks("ndn", Fallback.NO_PLUGIN));
    assertEquals(opened + 1, stats.connectionsOpened("tcp"));
    assertEquals(openedFirst, stats.connectionsOpened("ndn"));
    assertTrue(stats.json().contains("\"fallbacks_by_transport\":{\"ndn\":{\"no_plugin\":"));
  }

  /** A channel that failed to connect is of no more use, but options and address were set on it. */
  @Test
  void afterAFailureTheNextTransportGetsTheSameOptionsAndAddress() throws IOException {
    try (Socket socket =
        socket(
            dial -> {
              IOException e = assertThrows(ConnectException.class, () -> dial.tcp(nobody, 1000));
              throw new NotServed(Fallback.PLUGIN_UNREACHABLE, e.getMessage());
            })) {
      socket.setKeepAlive(true);
      socket.setTcpNoDelay(true);
      socket.bind(new InetSocketAddress(LOCAL, 0));
      int port = socket.getLocalPort();
      NetUtils.connect(socket, target, 1000);
      assertTrue(socket.getKeepAlive());
      assertTrue(socket.getTcpNoDelay());
      assertEquals(LOCAL, socket.getLocalAddress());
      assertNotEquals(0, port);
    }
  }

  /**
   * What stock code asks for its RPC with low latency comes before, and what is replaced is new.
   */
  @Test
  void everyConnectionOfASocketIsMarked() throws IOException {
    Configuration conf = new Configuration(false);
    conf.set("trunkline.dscp", "on");
    conf.set("trunkline.dscp.client-write", "AF21");
    SocketMark mark = SocketMark.of(Settings.from(conf), TrafficCategory.CLIENT_WRITE);
    List<Transport> list =
        List.of(
            transport(
                "ndn",
                dial -> {
                  assertEquals(TrafficCategory.CLIENT_WRITE, dial.category());
                  assertThrows(ConnectException.class, () -> dial.tcp(nobody, 1000));
                  throw new NotServed(Fallback.PLUGIN_UNREACHABLE, "");
                }),
            transport("tcp", d -> d.tcp(d.dataNode(), d.timeoutMs())));
    try (Socket socket = new LateChannelSocket(new TransportChain(settings, list), null, mark)) {
      socket.setTrafficClass(0x10);
      NetUtils.connect(socket, target, 1000);
      assertEquals(18 << 2, socket.getTrafficClass());
    }
  }

  /** Whoever closes a socket that another thread still connects anew leaves no connection open. */
  @Test
  void aClosedSocketIsNotConnectedAnew() throws IOException {
    List<Dial> dials = new ArrayList<>();
    Socket socket =
        socket(
            dial -> {
              dials.add(dial);
              return dial.tcp(target, 1000);
            });
    NetUtils.connect(socket, target, 1000);
    assertFalse(dials.get(0).abandoned());
    socket.close();
    assertTrue(socket.isClosed());
    assertTrue(dials.get(0).abandoned());
    assertThrows(SocketException.class, () -> dials.get(0).tcp(target, 1000));
    assertEquals(target, socket.getRemoteSocketAddress(), "for logs");
  }

  /** A failure that is no refusal is stock code's to handle: no other transport is tried. */
  @Test
  void aFailureIsNotARefusal() throws IOException {
    try (Socket socket =
        socket(
            dial -> {
              throw new ConnectException("no way");
            })) {
      assertThrows(ConnectException.class, () -> NetUtils.connect(socket, target, 1000));
      assertEquals(List.of("ndn"), tried);
      assertFalse(socket.isConnected());
    }
  }

  @Test
  void aSocketThatIsClosedMeanwhileIsNotShown() throws IOException {
    LateChannelSocket socket =
        socket(
            dial -> {
              SocketChannel channel = dial.tcp(target, 1000);
              dial.socket().close();
              assertTrue(dial.abandoned());
              return channel;
            });
    assertThrows(SocketException.class, () -> socket.connect(target));
    assertTrue(socket.isClosed());
  }
}

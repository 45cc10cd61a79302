package io.trunkline.hadoop.ndn.hdfs;

import io.trunkline.hadoop.conf.DataProtection;
import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.conf.TrafficCategory;
import io.trunkline.hadoop.conf.TransportNames;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.ndn.datanode.NdnDataNode;
import io.trunkline.hadoop.ndn.secure.SealedWire;
import io.trunkline.hadoop.ndn.secure.SecureClient;
import io.trunkline.hadoop.ndn.secure.SecureSession;
import io.trunkline.hadoop.ndn.wire.Welcome;
import io.trunkline.hadoop.ndn.write.NamedWrites;
import io.trunkline.hadoop.ndn.write.PacketsInFlight;
import io.trunkline.hadoop.ndn.write.Planner;
import io.trunkline.hadoop.ndn.write.WritePlanner;
import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.tap.TapChannel;
import io.trunkline.hadoop.transport.Dial;
import io.trunkline.hadoop.transport.Discovery;
import io.trunkline.hadoop.transport.NotServed;
import io.trunkline.hadoop.transport.PlaneHealth.Failure;
import io.trunkline.hadoop.transport.PluginDialer;
import io.trunkline.hadoop.transport.Transport;
import io.trunkline.hadoop.transport.XceiverStarter;
import io.trunkline.hadoop.wire.BlockToken;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.client.HdfsClientConfigKeys;
import org.apache.hadoop.hdfs.server.datanode.DataNode;

/**
 * Named data: a TCP connection to the DataNode's plug-in carries the control records of a write,
 * whose packet bodies go by name. What turns out to be no such write goes on a connection to the
 * DataNode's stock port. Where a write has a block token, the connection is made secure by it
 * first; the token itself never goes to a port that a record named.
 */
public final class NdnTransport implements Transport {
  /** A plug-in that does not answer by then is given up for the next transport. */
  private static final int CONNECT_MS = 5000;

  /** The same for its part of the handshake. */
  private static final int HANDSHAKE_MS = 5000;

  private final Settings settings;
  private final PacketsInFlight inFlight;

  /** What protects data transfer by this process's own configuration; empty when nothing does. */
  private final String protection;

  /** Why writes with a block token may not go by name; empty when they may. */
  private final String noSecuredWrites;

  /**
   * The transport.
   *
   * @param settings the settings
   * @param conf says how many packets HDFS leaves unacknowledged, their size, and how data transfer
   *     is protected
   */
  public NdnTransport(Settings settings, Configuration conf) {
    this.settings = settings;
    this.protection = DataProtection.of(conf);
    this.noSecuredWrites = DataProtection.againstSecuredWrites(conf);
    this.inFlight =
        new PacketsInFlight(
            conf.getInt(
                HdfsClientConfigKeys.Write.MAX_PACKETS_IN_FLIGHT_KEY,
                HdfsClientConfigKeys.Write.MAX_PACKETS_IN_FLIGHT_DEFAULT),
            conf.getInt(
                HdfsClientConfigKeys.DFS_CLIENT_WRITE_PACKET_SIZE_KEY,
                HdfsClientConfigKeys.DFS_CLIENT_WRITE_PACKET_SIZE_DEFAULT));
  }

  @Override
  public String name() {
    return TransportNames.NDN;
  }

  @Override
  public SocketChannel open(Dial dial) throws NotServed, IOException {
    BlockToken token = PendingWrite.token();
    if (token == null && !protection.isEmpty()) {
      throw new NotServed(Fallback.SECURED_OTHER, protection);
    }
    if (token != null && !noSecuredWrites.isEmpty()) {
      throw new NotServed(Fallback.NO_RESOLVER, noSecuredWrites);
    }
    try (NdnNode node = acquire(dial.category())) {
      String paused = node.health().paused(dial.peer());
      if (paused != null) {
        throw new NotServed(Fallback.PLANE_PAUSED, paused);
      }
      if (!node.routerUp()) {
        throw new NotServed(Fallback.ROUTER_DOWN, settings.face());
      }
      Discovery.Route route = node.discovery().route(dial.dataNode());
      if (isOtherwiseSecured(route, token)) {
        // Somebody else may have said so.
        route = node.discovery().insteadOf(dial.dataNode(), route);
      }
      refuseOtherSecurity(route, token);
      AtomicReference<SecureSession> session = new AtomicReference<>();
      SocketChannel control;
      try {
        control =
            new PluginDialer(node.discovery(), Fallback.NOT_NAMED, CONNECT_MS, System::nanoTime)
                .connect(dial, (plugin, limitMs) -> connect(dial, plugin, limitMs, token, session));
      } catch (NotServed e) {
        if (e.reason() == Fallback.HANDSHAKE) {
          node.health().failed(dial.peer(), Failure.BAD, "handshake: " + e.getMessage());
        }
        throw e;
      }
      return token == null
          ? plain(dial, node, control)
          : secured(dial, node, control, session.get());
    }
  }

  /** Token and plug-in go together, or the connection goes elsewhere before anything is sent. */
  private static void refuseOtherSecurity(Discovery.Route route, BlockToken token)
      throws NotServed {
    if (!isOtherwiseSecured(route, token)) {
      return;
    }
    if (token == null) {
      throw new NotServed(Fallback.SECURED_OTHER, "the DataNode wants a block token");
    }
    throw new NotServed(Fallback.BLOCK_TOKEN, "the DataNode's plug-in takes none");
  }

  private static boolean isOtherwiseSecured(Discovery.Route route, BlockToken token) {
    return route.outcome() == Discovery.Outcome.SERVED && route.secured() != (token != null);
  }

  private TapChannel plain(Dial dial, NdnNode node, SocketChannel control) {
    Planner planner = new WritePlanner(settings, dial.category(), dial.peer(), inFlight);
    StockExit exit =
        new StockExit(() -> stock(dial), false, () -> false, node.health(), dial.peer());
    return new TapChannel(dial.socket(), control, new NamedWrites(planner, exit));
  }

  private TapChannel secured(Dial dial, NdnNode node, SocketChannel control, SecureSession session)
      throws IOException {
    try {
      BooleanSupplier trusted = dial.secured();
      Planner planner = new WritePlanner(settings, dial.category(), dial.peer(), inFlight, true);
      StockExit exit = new StockExit(() -> stock(dial), true, trusted, node.health(), dial.peer());
      TransferStats.get().add(Counter.SECURED_CONNECTIONS);
      return new TapChannel(
          dial.socket(), control, new SealedWire(session), new NamedWrites(planner, exit));
    } catch (IOException | RuntimeException e) {
      session.close();
      control.close();
      throw e;
    }
  }

  /**
   * Whether a plug-in listens where the record says is seen before anything is sent there. Then the
   * connection is made secure, by the token that the write is going to show. All of that happens
   * while stock code still connects: when it asks whether it may do without a handshake of its own,
   * the DataNode has shown that it knows the token. What fails before goes to the stock port, with
   * all of stock code's protection.
   *
   * @param token null where there is to be no handshake
   * @param session is set where there was one
   */
  private static SocketChannel connect(
      Dial dial,
      InetSocketAddress plugin,
      int limitMs,
      BlockToken token,
      AtomicReference<SecureSession> session)
      throws IOException {
    long began = System.nanoTime();
    SocketChannel channel = dial.tcp(plugin, limitMs);
    try {
      long tookMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began);
      Welcome welcome = Welcome.await(channel, (int) Math.max(1, limitMs - tookMs));
      if (token != null) {
        session.set(handshake(dial, channel, welcome, token));
      }
      return channel;
    } catch (IOException e) {
      channel.close();
      throw e;
    }
  }

  private static SecureSession handshake(
      Dial dial, SocketChannel channel, Welcome welcome, BlockToken token) throws IOException {
    try {
      return SecureClient.handshake(channel, welcome, token, dial.dataNode(), HANDSHAKE_MS);
    } catch (IOException e) {
      throw new PluginDialer.Unproven(Fallback.HANDSHAKE, e);
    }
  }

  private static SocketChannel stock(Dial dial) throws IOException {
    SocketChannel stock = dial.tcp(dial.dataNode(), dial.timeoutMs());
    TransferStats.get().opened(TransportNames.TCP);
    return stock;
  }

  private NdnNode acquire(TrafficCategory category) throws NotServed {
    try {
      return NdnNode.acquire(settings, category);
    } catch (IOException e) {
      throw new NotServed(Fallback.NODE_DOWN, e.getMessage());
    }
  }

  @Override
  public AutoCloseable serve(DataNode dataNode, XceiverStarter xceivers) throws IOException {
    return NdnDataNode.start(dataNode, settings, xceivers);
  }
}

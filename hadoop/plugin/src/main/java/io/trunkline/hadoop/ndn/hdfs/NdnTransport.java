package io.trunkline.hadoop.ndn.hdfs;

import io.trunkline.hadoop.conf.DataProtection;
import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.conf.TrafficCategory;
import io.trunkline.hadoop.conf.TransportNames;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.ndn.datanode.NdnDataNode;
import io.trunkline.hadoop.ndn.wire.Welcome;
import io.trunkline.hadoop.ndn.write.NamedWrites;
import io.trunkline.hadoop.ndn.write.PacketsInFlight;
import io.trunkline.hadoop.ndn.write.Planner;
import io.trunkline.hadoop.ndn.write.WritePlanner;
import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.tap.TapChannel;
import io.trunkline.hadoop.transport.Dial;
import io.trunkline.hadoop.transport.NotServed;
import io.trunkline.hadoop.transport.PluginDialer;
import io.trunkline.hadoop.transport.Transport;
import io.trunkline.hadoop.transport.XceiverStarter;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.client.HdfsClientConfigKeys;
import org.apache.hadoop.hdfs.server.datanode.DataNode;

/**
 * Named data: a TCP connection to the DataNode's plug-in carries the control records of a write,
 * whose packet bodies go by name. What turns out to be no such write goes on a connection to the
 * DataNode's stock port; a block token never goes to a port that a record named.
 */
public final class NdnTransport implements Transport {
  /** A plug-in that does not answer by then is given up for the next transport. */
  private static final int CONNECT_MS = 5000;

  private final Settings settings;
  private final PacketsInFlight inFlight;

  /** Why this process may not use named data, whatever a DataNode answers; empty when it may. */
  private final String forbidden;

  /**
   * The transport.
   *
   * @param settings the settings
   * @param conf says how many packets HDFS leaves unacknowledged, their size, and how data transfer
   *     is protected
   */
  public NdnTransport(Settings settings, Configuration conf) {
    this.settings = settings;
    this.forbidden = DataProtection.againstNamedData(conf);
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
    if (!forbidden.isEmpty()) {
      throw new NotServed(Fallback.PROTECTED, forbidden);
    }
    try (NdnNode node = acquire(dial.category())) {
      String paused = node.health().paused(dial.peer());
      if (paused != null) {
        throw new NotServed(Fallback.PLANE_PAUSED, paused);
      }
      if (!node.routerUp()) {
        throw new NotServed(Fallback.ROUTER_DOWN, settings.face());
      }
      SocketChannel control =
          new PluginDialer(node.discovery(), Fallback.NOT_NAMED, CONNECT_MS, System::nanoTime)
              .connect(dial, (plugin, limitMs) -> connect(dial, plugin, limitMs));
      Planner planner = new WritePlanner(settings, dial.category(), dial.peer(), inFlight);
      return new TapChannel(dial.socket(), control, new NamedWrites(planner, () -> stock(dial)));
    }
  }

  /** Whether a plug-in listens where the record says is seen before anything is sent there. */
  private static SocketChannel connect(Dial dial, InetSocketAddress plugin, int limitMs)
      throws IOException {
    long began = System.nanoTime();
    SocketChannel channel = dial.tcp(plugin, limitMs);
    try {
      long tookMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began);
      Welcome.await(channel, (int) Math.max(1, limitMs - tookMs));
      return channel;
    } catch (IOException e) {
      channel.close();
      throw e;
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

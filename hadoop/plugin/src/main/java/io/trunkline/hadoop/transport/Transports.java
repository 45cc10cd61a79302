package io.trunkline.hadoop.transport;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.conf.TransportNames;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.ndn.NdnTransport;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.ucx.hdfs.UcxTransport;
import java.io.IOException;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;

/**
 * The transports of {@code trunkline.transport}, in order. An operation that one refuses goes by
 * the next; this is the place where that is counted and logged.
 */
public final class Transports {
  static {
    TransferStats.get().section("nodes", NdnNode::statusOfAll);
  }

  private final List<Transport> inOrder;
  private final Settings settings;
  private final TransferStats stats = TransferStats.get();

  Transports(Settings settings, List<Transport> inOrder) {
    this.settings = settings;
    this.inOrder = inOrder;
  }

  /**
   * The transports of a configuration.
   *
   * @param settings its settings
   * @param conf the configuration
   * @return them
   */
  public static Transports of(Settings settings, Configuration conf) {
    List<Transport> inOrder = new ArrayList<>();
    for (String name : settings.transports()) {
      inOrder.add(
          switch (name) {
            case TransportNames.NDN -> new NdnTransport(settings, conf);
            case TransportNames.UCX -> new UcxTransport(settings);
            case TransportNames.TCP -> new TcpTransport();
            default -> throw new IllegalArgumentException("no transport is named " + name);
          });
    }
    return new Transports(settings, inOrder);
  }

  /**
   * Whether blocks are read by name: not so where a transport that can be used comes before.
   *
   * @param settings the settings
   * @return true when named data is the first choice
   */
  public static boolean readsByName(Settings settings) {
    for (String name : settings.transports()) {
      if (name.equals(TransportNames.NDN)) {
        return true;
      }
      if (name.equals(TransportNames.UCX) && UcxTransport.available(settings)) {
        return false;
      }
    }
    return false;
  }

  /**
   * The transports.
   *
   * @return in order, tcp last
   */
  List<Transport> inOrder() {
    return inOrder;
  }

  /**
   * Opens a connection by the first transport that serves.
   *
   * @param dial what stock code wants
   * @return the channel
   * @throws IOException when none can
   */
  SocketChannel open(Dial dial) throws IOException {
    for (Transport transport : inOrder) {
      try {
        SocketChannel channel = transport.open(dial);
        stats.opened(transport.name());
        return channel;
      } catch (NotServed e) {
        stats.fallback(
            transport.name(),
            settings.transportAfter(transport.name()),
            e.reason(),
            dial.peer(),
            e.getMessage());
      }
    }
    throw new IllegalStateException("tcp serves every connection");
  }
}

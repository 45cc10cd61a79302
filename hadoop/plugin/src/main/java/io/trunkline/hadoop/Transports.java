package io.trunkline.hadoop;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.conf.TransportNames;
import io.trunkline.hadoop.mirror.MirrorTransport;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.ndn.hdfs.NdnTransport;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.transport.TcpTransport;
import io.trunkline.hadoop.transport.Transport;
import io.trunkline.hadoop.transport.TransportChain;
import io.trunkline.hadoop.ucx.hdfs.UcxTransport;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;

/** The one place that knows every transport and puts together what a configuration wants. */
public final class Transports {
  static {
    TransferStats.get().section("nodes", NdnNode::statusOfAll);
  }

  private Transports() {}

  /**
   * The transports of a configuration.
   *
   * @param settings its settings
   * @param conf the configuration
   * @return them, in order
   */
  public static TransportChain of(Settings settings, Configuration conf) {
    List<Transport> inOrder = new ArrayList<>();
    for (String name : settings.transports()) {
      inOrder.add(
          switch (name) {
            case TransportNames.NDN -> new NdnTransport(settings, conf);
            case TransportNames.UCX -> new UcxTransport(settings);
            case TransportNames.MIRROR -> new MirrorTransport(settings);
            case TransportNames.TCP -> new TcpTransport();
            default -> throw new IllegalArgumentException("no transport is named " + name);
          });
    }
    return new TransportChain(settings, inOrder);
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
}

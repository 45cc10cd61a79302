package io.trunkline.hadoop.socket;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.ndn.Discovery;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.write.WritePlanner;
import io.trunkline.hadoop.write.WriteTap;
import java.io.IOException;
import java.net.InetSocketAddress;

/**
 * Says where an HDFS data connection goes: to the plug-in of the DataNode, or to its stock port.
 */
public final class DataRouter {
  private final Settings settings;
  private final int packetsInFlight;
  private final TransferStats stats = TransferStats.get();

  /**
   * A router.
   *
   * @param settings the settings
   * @param packetsInFlight most packets that HDFS leaves unacknowledged
   */
  public DataRouter(Settings settings, int packetsInFlight) {
    this.settings = settings;
    this.packetsInFlight = packetsInFlight;
  }

  /**
   * Looks for the plug-in of a DataNode.
   *
   * @param transfer the DataNode's stock data-transfer address
   * @return where the plug-in listens, or null when the connection goes to the stock port
   */
  InetSocketAddress plugin(InetSocketAddress transfer) {
    String peer = text(transfer);
    try (NdnNode node = NdnNode.acquire(settings)) {
      if (!node.health().good()) {
        stats.fallback(Fallback.PLANE_PAUSED, peer, node.health().cause());
        return null;
      }
      if (!node.routerUp()) {
        stats.fallback(Fallback.ROUTER_DOWN, peer, settings.face());
        return null;
      }
      Discovery.Route route = node.discovery().route(transfer);
      if (route.plugin() == null) {
        stats.fallback(
            route.found() ? Fallback.NOT_NAMED : Fallback.NO_PLUGIN, peer, route.reason());
      }
      return route.plugin();
    } catch (IOException e) {
      stats.fallback(Fallback.NODE_DOWN, peer, e.getMessage());
      return null;
    }
  }

  /**
   * The plug-in of a DataNode did not take a connection.
   *
   * @param transfer the DataNode's stock data-transfer address
   * @param cause what happened
   */
  void unreachable(InetSocketAddress transfer, IOException cause) {
    stats.fallback(Fallback.PLUGIN_UNREACHABLE, text(transfer), cause.getMessage());
    try (NdnNode node = NdnNode.acquire(settings)) {
      node.discovery().forget(transfer);
    } catch (IOException e) {
      stats.fallback(Fallback.NODE_DOWN, text(transfer), e.getMessage());
    }
  }

  /**
   * A tap for a new connection to a plug-in.
   *
   * @param transfer the DataNode's stock data-transfer address
   * @return the tap
   */
  WriteTap tap(InetSocketAddress transfer) {
    return new WriteTap(new WritePlanner(settings, text(transfer), packetsInFlight));
  }

  private static String text(InetSocketAddress transfer) {
    return transfer.getAddress().getHostAddress() + ":" + transfer.getPort();
  }
}

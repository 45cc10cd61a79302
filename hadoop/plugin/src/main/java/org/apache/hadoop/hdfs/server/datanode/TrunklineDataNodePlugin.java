package org.apache.hadoop.hdfs.server.datanode;

import io.trunkline.hadoop.datanode.DataNodeService;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.hadoop.hdfs.net.PeerServer;
import org.apache.hadoop.util.Daemon;
import org.apache.hadoop.util.ServicePlugin;

/**
 * Shim for {@code dfs.datanode.plugins}: runs a second, package-private {@link DataXceiverServer}
 * over the listener of {@link DataNodeService}.
 */
public final class TrunklineDataNodePlugin implements ServicePlugin {
  private DataNodeService service;

  /** Made by the DataNode. */
  public TrunklineDataNodePlugin() {}

  @Override
  public void start(Object dataNode) {
    DataNode datanode = (DataNode) dataNode;
    try {
      service = DataNodeService.start(datanode, peers -> serve(datanode, peers));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void serve(DataNode datanode, PeerServer peers) {
    Daemon server =
        new Daemon(
            datanode.threadGroup, new DataXceiverServer(peers, datanode.getConf(), datanode));
    server.setName("trunkline-xceiver-server");
    server.start();
  }

  @Override
  public void stop() {
    if (service != null) {
      service.close();
      service = null;
    }
  }

  @Override
  public void close() {
    stop();
  }
}

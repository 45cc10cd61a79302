package org.apache.hadoop.hdfs.server.datanode;

import io.trunkline.hadoop.DataNodeService;
import java.io.IOException;
import java.io.UncheckedIOException;
import org.apache.hadoop.hdfs.net.Peer;
import org.apache.hadoop.util.Daemon;
import org.apache.hadoop.util.ServicePlugin;

/**
 * Shim for {@code dfs.datanode.plugins}: hands the connections of {@link DataNodeService} to the
 * DataNode's package-private {@link DataXceiverServer}, as that one does with those it accepts.
 */
public final class TrunklineDataNodePlugin implements ServicePlugin {
  private DataNodeService service;

  /** Made by the DataNode. */
  public TrunklineDataNodePlugin() {}

  @Override
  public void start(Object dataNode) {
    DataNode datanode = (DataNode) dataNode;
    try {
      service = DataNodeService.start(datanode, peer -> serve(datanode, peer));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void serve(DataNode datanode, Peer peer) throws IOException {
    DataXceiverServer server = datanode.getXferServer();
    if (datanode.getXceiverCount() > server.maxXceiverCount) {
      throw new IOException(
          "Xceiver count exceeds the limit of concurrent xceivers: " + server.maxXceiverCount);
    }
    new Daemon(datanode.threadGroup, DataXceiver.create(peer, datanode, server)).start();
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

package io.trunkline.hadoop.transport;

import io.trunkline.hadoop.conf.TransportNames;
import java.io.IOException;
import java.nio.channels.SocketChannel;
import org.apache.hadoop.hdfs.server.datanode.DataNode;

/** Stock transfer: the end of every list. Its listener is the DataNode's own. */
public final class TcpTransport implements Transport {
  @Override
  public String name() {
    return TransportNames.TCP;
  }

  @Override
  public SocketChannel open(Dial dial) throws IOException {
    return dial.tcp(dial.dataNode(), dial.timeoutMs());
  }

  @Override
  public AutoCloseable serve(DataNode dataNode, XceiverStarter xceivers) {
    return () -> {};
  }
}

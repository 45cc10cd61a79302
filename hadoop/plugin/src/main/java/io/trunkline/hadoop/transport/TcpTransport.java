package io.trunkline.hadoop.transport;

import java.io.IOException;
import java.nio.channels.SocketChannel;
import org.apache.hadoop.hdfs.server.datanode.DataNode;

/** Stock transfer: the end of every list. Its listener is the DataNode's own. */
final class TcpTransport implements Transport {
  static final String NAME = "tcp";

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public SocketChannel open(Dial dial) throws IOException {
    return dial.tcp(dial.dataNode(), dial.timeoutMs());
  }

  @Override
  public AutoCloseable serve(DataNode dataNode, Xceivers xceivers) {
    return () -> {};
  }
}

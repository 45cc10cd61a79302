package io.trunkline.hadoop.transport;

import java.io.IOException;
import org.apache.hadoop.hdfs.net.Peer;

/** Starts a stock DataXceiver for each accepted connection; the shim's part. */
@FunctionalInterface
public interface XceiverStarter {
  /**
   * Has a connection served on a thread of the DataNode.
   *
   * @param peer the connection
   * @throws IOException when the DataNode takes no more
   */
  void start(Peer peer) throws IOException;
}

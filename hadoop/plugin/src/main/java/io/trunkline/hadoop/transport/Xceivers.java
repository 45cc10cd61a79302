package io.trunkline.hadoop.transport;

import java.io.IOException;
import org.apache.hadoop.hdfs.net.Peer;

/** Hands accepted connections to stock code; the shim's part. */
@FunctionalInterface
public interface Xceivers {
  /**
   * Serves a connection on a thread of the DataNode.
   *
   * @param peer the connection
   * @throws IOException when the DataNode takes no more
   */
  void serve(Peer peer) throws IOException;
}

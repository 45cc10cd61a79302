package io.trunkline.hadoop.transport;

import java.io.IOException;
import java.nio.channels.SocketChannel;
import org.apache.hadoop.hdfs.server.datanode.DataNode;

/**
 * A way for the bytes of HDFS data connections; the seam between stock Hadoop and a network.
 *
 * <p>A client opens a connection to a DataNode through {@link #open} and gets a channel, which
 * {@link LateChannelSocket} shows to stock code: that is how a connection is carried, with HDFS's
 * own time-outs. A DataNode accepts connections through {@link #serve} and hands each, as a stock
 * peer, to its own DataXceivers. Whatever a transport cannot do it refuses with {@link NotServed};
 * {@link TransportChain} tries the next one of the list, counts and logs.
 */
public interface Transport {
  /**
   * Its name in {@code trunkline.transport} and in the counters.
   *
   * @return a lower-case word
   */
  String name();

  /**
   * Opens a connection to a DataNode.
   *
   * @param dial the DataNode, the limits and the socket that stock code holds
   * @return a connected channel that blocks; its provider's selectors select it
   * @throws NotServed when this transport cannot serve that DataNode now
   * @throws IOException when the connection has failed, and no other transport is to be tried
   */
  SocketChannel open(Dial dial) throws NotServed, IOException;

  /**
   * Begins to accept connections to a DataNode.
   *
   * @param dataNode the DataNode, which may not have registered yet
   * @param xceivers serves the connections
   * @return ends it; connections that are open go on
   * @throws IOException when it cannot be started
   */
  AutoCloseable serve(DataNode dataNode, XceiverStarter xceivers) throws IOException;
}

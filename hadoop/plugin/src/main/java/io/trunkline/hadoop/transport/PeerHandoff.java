package io.trunkline.hadoop.transport;

import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.util.LogLimit;
import java.io.Closeable;
import java.io.IOException;
import org.apache.hadoop.hdfs.net.Peer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Where a transport hands over what it has accepted. It is served by the DataNode's own
 * DataXceiverServer, so that throttling, eviction of writers and out-of-band messages reach it as
 * any other connection.
 */
public final class PeerHandoff {
  /** Makes what stock code sees of a connection. */
  @FunctionalInterface
  public interface PeerMaker {
    /**
     * Makes it.
     *
     * @return the peer
     * @throws IOException when the connection has gone already
     */
    Peer make() throws IOException;
  }

  private static final Logger LOG = LoggerFactory.getLogger(PeerHandoff.class);

  private final String transport;
  private final XceiverStarter xceivers;
  private final TransferStats stats = TransferStats.get();
  private final LogLimit lines = new LogLimit();

  /**
   * A hand-off.
   *
   * @param transport name of the transport
   * @param xceivers start the threads that serve connections
   */
  public PeerHandoff(String transport, XceiverStarter xceivers) {
    this.transport = transport;
    this.xceivers = xceivers;
  }

  /**
   * Has a connection served. One that is not is closed at once, and none behind it has to wait for
   * that.
   *
   * @param accepted the connection
   * @param maker makes what stock code sees of it
   */
  public void take(Closeable accepted, PeerMaker maker) {
    boolean served = false;
    try {
      xceivers.start(maker.make());
      stats.accepted(transport);
      served = true;
    } catch (IOException | RuntimeException e) {
      failed("connection closed unserved", e);
    } finally {
      if (!served) {
        close(accepted);
      }
    }
  }

  /**
   * Logs a failure. Strangers can bring failures about as often as they like: one line a minute.
   *
   * @param what what has failed
   * @param e the cause
   */
  public void failed(String what, Throwable e) {
    if (lines.allows()) {
      LOG.warn("{}: {}: {}", transport, what, e.toString());
    } else {
      LOG.debug("{}: {}: {}", transport, what, e.toString());
    }
  }

  private static void close(Closeable accepted) {
    try {
      accepted.close();
    } catch (IOException e) {
      LOG.debug("connection not closed", e);
    }
  }
}

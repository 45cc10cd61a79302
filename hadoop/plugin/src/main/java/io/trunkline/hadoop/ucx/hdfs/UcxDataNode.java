package io.trunkline.hadoop.ucx.hdfs;

import io.trunkline.hadoop.conf.Setting;
import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.conf.TransportNames;
import io.trunkline.hadoop.transport.AcceptLoop;
import io.trunkline.hadoop.transport.DataNodeRecord;
import io.trunkline.hadoop.transport.PeerHandoff;
import io.trunkline.hadoop.transport.RecordServer;
import io.trunkline.hadoop.transport.XceiverStarter;
import io.trunkline.hadoop.ucx.BodiesChannel;
import io.trunkline.hadoop.ucx.BodiesListener;
import io.trunkline.hadoop.ucx.TimedChannel;
import io.trunkline.hadoop.ucx.UcxChannel;
import io.trunkline.hadoop.ucx.UcxListener;
import io.trunkline.hadoop.ucx.UcxNode;
import java.io.Closeable;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.ClosedChannelException;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * UCX at a DataNode: takes data connections, and answers at the UDP port that has the number of the
 * DataNode's stock port where it does so. A DataNode without UCX answers there why it does not.
 */
final class UcxDataNode implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(UcxDataNode.class);
  private static final int BACKLOG = 256;

  private final Settings settings;
  private UcxNodes.Use use;
  private AcceptLoop<UcxChannel> loop;
  private AcceptLoop<BodiesChannel> splitLoop;
  private RecordServer records;

  private UcxDataNode(Settings settings) {
    this.settings = settings;
  }

  /**
   * Starts it.
   *
   * @param dataNode the DataNode
   * @param settings the settings
   * @param xceivers hands connections to stock code
   * @return what is to be closed in the end
   * @throws IOException when it cannot be started
   */
  static UcxDataNode start(DataNode dataNode, Settings settings, XceiverStarter xceivers)
      throws IOException {
    UcxDataNode service = new UcxDataNode(settings);
    try {
      service.records =
          new RecordServer(dataNode.getXferAddress(), TransportNames.UCX, service.listen(xceivers));
      return service;
    } catch (IOException | RuntimeException e) {
      service.close();
      throw e;
    }
  }

  /** Returns what to answer: where it listens, or why it does not. */
  private DataNodeRecord listen(XceiverStarter xceivers) {
    String reason = UcxNodes.unavailable(settings.ucx());
    if (reason.isEmpty()) {
      try {
        return accept(xceivers);
      } catch (IOException e) {
        reason = e.getMessage();
      }
    }
    LOG.warn("UCX is off on this DataNode: {}", reason);
    return new DataNodeRecord(UcxNode.PROTOCOL_VERSION, false, "", 0, reason);
  }

  private DataNodeRecord accept(XceiverStarter xceivers) throws IOException {
    InetSocketAddress wanted = settings.ucxAddress();
    use = UcxNodes.acquire(settings.ucx());
    UcxListener listener;
    try {
      listener = use.node().listen(wanted, BACKLOG);
    } catch (IOException e) {
      throw new IOException(Setting.UCX_ADDRESS.key() + " = " + wanted + ": " + e.getMessage(), e);
    }
    InetSocketAddress address = listener.address();
    loop = accept("trunkline-ucx-acceptor", xceivers, listener, () -> listener.accept(0));
    LOG.info("UCX: connections are accepted at {}", address);
    boolean anywhere = wanted.getAddress().isAnyLocalAddress();
    return new DataNodeRecord(
        UcxNode.PROTOCOL_VERSION,
        true,
        anywhere ? "" : wanted.getAddress().getHostAddress(),
        address.getPort(),
        "",
        false,
        settings.ucxSmallBytes() == 0 ? null : acceptSplit(xceivers, wanted));
  }

  /** Takes connections whose small messages go by TCP, too. */
  private DataNodeRecord.Split acceptSplit(XceiverStarter xceivers, InetSocketAddress wanted)
      throws IOException {
    BodiesListener listener = BodiesListener.open(use.node(), wanted, settings.ucxSmallBytes());
    splitLoop = accept("trunkline-ucx-split-acceptor", xceivers, listener, listener::accept);
    LOG.info("UCX: split connections at ports {} and {}", listener.ucxPort(), listener.tcpPort());
    return new DataNodeRecord.Split(listener.ucxPort(), listener.tcpPort());
  }

  private <C extends TimedChannel> AcceptLoop<C> accept(
      String name, XceiverStarter xceivers, Closeable listener, Acceptor<C> acceptor) {
    return new AcceptLoop<>(
        name,
        new Source<>(listener, acceptor),
        channel -> new UcxPeer(channel, settings),
        new PeerHandoff(TransportNames.UCX, xceivers));
  }

  /** Waits for a connection. */
  @FunctionalInterface
  private interface Acceptor<C> {
    C accept() throws IOException;
  }

  /** A listener, as the loop wants it. */
  private static final class Source<C> implements AcceptLoop.Listener<C> {
    private final Closeable listener;
    private final Acceptor<C> acceptor;
    private volatile boolean open = true;

    Source(Closeable listener, Acceptor<C> acceptor) {
      this.listener = listener;
      this.acceptor = acceptor;
    }

    @Override
    public C accept() throws IOException {
      try {
        return acceptor.accept();
      } catch (ClosedChannelException e) {
        open = false;
        throw e;
      }
    }

    @Override
    public boolean isOpen() {
      return open;
    }

    @Override
    public void close() throws IOException {
      open = false;
      listener.close();
    }
  }

  @Override
  public void close() {
    if (records != null) {
      records.close();
    }
    if (loop != null) {
      loop.close();
    }
    if (splitLoop != null) {
      splitLoop.close();
    }
    if (use != null) {
      use.close();
    }
  }
}

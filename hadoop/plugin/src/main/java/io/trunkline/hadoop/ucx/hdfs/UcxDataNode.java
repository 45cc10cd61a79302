package io.trunkline.hadoop.ucx.hdfs;

import io.trunkline.hadoop.conf.Setting;
import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.conf.TransportNames;
import io.trunkline.hadoop.transport.AcceptLoop;
import io.trunkline.hadoop.transport.DataNodeRecord;
import io.trunkline.hadoop.transport.PeerHandoff;
import io.trunkline.hadoop.transport.RecordServer;
import io.trunkline.hadoop.transport.XceiverStarter;
import io.trunkline.hadoop.ucx.UcxChannel;
import io.trunkline.hadoop.ucx.UcxListener;
import io.trunkline.hadoop.ucx.UcxNode;
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
    loop =
        new AcceptLoop<>(
            "trunkline-ucx-acceptor",
            new Source(listener),
            channel -> new UcxPeer(channel, settings),
            new PeerHandoff(TransportNames.UCX, xceivers));
    LOG.info("UCX: connections are accepted at {}", address);
    boolean anywhere = wanted.getAddress().isAnyLocalAddress();
    return new DataNodeRecord(
        UcxNode.PROTOCOL_VERSION,
        true,
        anywhere ? "" : wanted.getAddress().getHostAddress(),
        address.getPort(),
        "");
  }

  /** The listener, as the loop wants it. */
  private static final class Source implements AcceptLoop.Listener<UcxChannel> {
    private final UcxListener listener;
    private volatile boolean open = true;

    Source(UcxListener listener) {
      this.listener = listener;
    }

    @Override
    public UcxChannel accept() throws IOException {
      try {
        return listener.accept(0);
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
    public void close() {
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
    if (use != null) {
      use.close();
    }
  }
}

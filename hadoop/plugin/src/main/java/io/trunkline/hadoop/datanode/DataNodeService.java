package io.trunkline.hadoop.datanode;

import io.trunkline.hadoop.conf.Setting;
import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.ndn.DataNodeRecord;
import io.trunkline.hadoop.ndn.Native;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.stats.StatsFile;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.DFSConfigKeys;
import org.apache.hadoop.hdfs.net.Peer;
import org.apache.hadoop.hdfs.protocol.DatanodeID;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The plug-in's part of a DataNode: takes data connections of Trunkline clients, serves finalized
 * replicas by name, and says under the DataNode's discovery name how it is reached.
 */
public final class DataNodeService implements AutoCloseable {
  /** Hands connections to stock code; the shim's part. */
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

  private static final Logger LOG = LoggerFactory.getLogger(DataNodeService.class);
  private static final long RECORD_FRESH_MS = 1000;
  private static final long REGISTRATION_CHECK_MS = 50;

  private final DataNode dataNode;
  private final Settings settings;
  private final NdnNode node;
  private final CountDownLatch stopped = new CountDownLatch(1);
  private Acceptor acceptor;
  private InetSocketAddress address;
  private ReplicaResolver resolver;
  private Thread announcer;

  private DataNodeService(DataNode dataNode, Settings settings) throws IOException {
    this.dataNode = dataNode;
    this.settings = settings;
    this.node = NdnNode.acquire(settings);
  }

  /**
   * Starts the plug-in's part of a DataNode.
   *
   * @param dataNode the DataNode
   * @param xceivers hands connections to stock code
   * @return the service, or null when the transports are tcp alone
   * @throws IOException when it cannot be started
   */
  public static DataNodeService start(DataNode dataNode, Xceivers xceivers) throws IOException {
    Settings settings = Settings.from(dataNode.getConf());
    if (!settings.ndn()) {
      LOG.info("data goes by stock TCP alone: {} has no ndn", Setting.TRANSPORT.key());
      return null;
    }
    DataNodeService service = new DataNodeService(dataNode, settings);
    try {
      service.open(xceivers);
      return service;
    } catch (IOException | RuntimeException e) {
      service.close();
      throw e;
    }
  }

  private void open(Xceivers xceivers) throws IOException {
    String refusal = refusal(dataNode.getConf());
    if (refusal.isEmpty()) {
      resolver = new ReplicaResolver(node, dataNode);
      acceptor =
          new Acceptor(
              settings.dataNodeAddress(),
              socket -> new NamedPeer(socket, node, resolver),
              xceivers);
      address = acceptor.address();
      LOG.info("data by name is taken at {}", address);
    } else {
      LOG.info("data goes by stock TCP alone: {}", refusal);
    }
    announcer = new Thread(() -> announce(refusal), "trunkline-announcer");
    announcer.setDaemon(true);
    announcer.start();
  }

  /** Why data may not go by name here; empty when it may. */
  private static String refusal(Configuration conf) {
    if (conf.getBoolean(
        DFSConfigKeys.DFS_ENCRYPT_DATA_TRANSFER_KEY,
        DFSConfigKeys.DFS_ENCRYPT_DATA_TRANSFER_DEFAULT)) {
      return DFSConfigKeys.DFS_ENCRYPT_DATA_TRANSFER_KEY + " is on, named data is not encrypted";
    }
    if (!conf.getTrimmed(DFSConfigKeys.DFS_DATA_TRANSFER_PROTECTION_KEY, "").isEmpty()) {
      return DFSConfigKeys.DFS_DATA_TRANSFER_PROTECTION_KEY
          + " is set, named data has no SASL protection";
    }
    if (conf.getBoolean(
        DFSConfigKeys.DFS_BLOCK_ACCESS_TOKEN_ENABLE_KEY,
        DFSConfigKeys.DFS_BLOCK_ACCESS_TOKEN_ENABLE_DEFAULT)) {
      return DFSConfigKeys.DFS_BLOCK_ACCESS_TOKEN_ENABLE_KEY
          + " is on, named data cannot check block tokens";
    }
    return "";
  }

  /**
   * Publishes the record as soon as the NameNode has said under which address it gives this
   * DataNode out, and again should that change.
   */
  private void announce(String refusal) {
    String announced = "";
    long record = 0;
    try {
      do {
        DatanodeID id = dataNode.getDatanodeId();
        String name =
            id == null || id.getIpAddr() == null
                ? ""
                : node.names().dataNode(id.getIpAddr(), id.getXferPort());
        if (!name.equals(announced)) {
          if (record != 0) {
            Native.unpublish(record);
          }
          record =
              Native.publishStatic(node.handle(), name, record(refusal).encode(), RECORD_FRESH_MS);
          announced = name;
          LOG.info("announced as {}", name);
        }
      } while (!stopped.await(
          announced.isEmpty() ? REGISTRATION_CHECK_MS : 1000, TimeUnit.MILLISECONDS));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } catch (IOException | RuntimeException e) {
      LOG.warn("DataNode not announced, data goes by stock TCP: {}", e.toString());
    } finally {
      if (record != 0) {
        Native.unpublish(record);
      }
    }
  }

  private DataNodeRecord record(String refusal) {
    if (!refusal.isEmpty()) {
      return new DataNodeRecord(false, "", 0, refusal);
    }
    return new DataNodeRecord(
        true,
        address.getAddress().isAnyLocalAddress() ? "" : address.getAddress().getHostAddress(),
        address.getPort(),
        "");
  }

  @Override
  public void close() {
    stopped.countDown();
    try {
      if (announcer != null) {
        announcer.join(TimeUnit.SECONDS.toMillis(2));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
    if (acceptor != null) {
      acceptor.close();
    }
    if (resolver != null) {
      resolver.close();
    }
    StatsFile.changed(settings.statsFile());
    node.close();
  }
}

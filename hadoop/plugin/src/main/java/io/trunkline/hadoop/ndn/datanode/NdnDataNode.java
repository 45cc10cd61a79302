package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.ndn.Native;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.ndn.NdnTransport;
import io.trunkline.hadoop.transport.DataNodeRecord;
import io.trunkline.hadoop.transport.Intake;
import io.trunkline.hadoop.transport.Xceivers;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.DFSConfigKeys;
import org.apache.hadoop.hdfs.protocol.DatanodeID;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Named data at a DataNode: takes data connections of Trunkline clients, serves finalized replicas
 * by name, and says under the DataNode's discovery name how it is reached.
 */
public final class NdnDataNode implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(NdnDataNode.class);
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

  private NdnDataNode(DataNode dataNode, Settings settings) throws IOException {
    this.dataNode = dataNode;
    this.settings = settings;
    this.node = NdnNode.acquire(settings);
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
  public static NdnDataNode start(DataNode dataNode, Settings settings, Xceivers xceivers)
      throws IOException {
    NdnDataNode service = new NdnDataNode(dataNode, settings);
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
              accepted -> new NamedPeer(accepted.socket(), node, resolver),
              new Intake(NdnTransport.NAME, xceivers));
      address = acceptor.address();
      LOG.info("data by name is taken at {}", address);
    } else {
      LOG.info("no data is taken by name: {}", refusal);
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
    node.close();
  }
}

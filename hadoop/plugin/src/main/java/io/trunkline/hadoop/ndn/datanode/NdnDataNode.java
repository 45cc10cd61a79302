package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.conf.DataProtection;
import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.conf.TransportNames;
import io.trunkline.hadoop.ndn.Native;
import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.transport.DataNodeRecord;
import io.trunkline.hadoop.transport.PeerHandoff;
import io.trunkline.hadoop.transport.XceiverStarter;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.Set;
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

  private final DataNode dataNode;
  private final Settings settings;
  private final NodesByCategory nodes;
  private final OwnAddresses own;
  private Acceptor acceptor;
  private InetSocketAddress address;

  /** Whether connections are taken only that are made secure by a block token. */
  private boolean secured;

  /** Null where no block is read by name. */
  private ServedReplicas replicas;

  private Announcer announcer;

  private NdnDataNode(DataNode dataNode, Settings settings) throws IOException {
    this.dataNode = dataNode;
    this.settings = settings;
    this.nodes = new NodesByCategory(settings);
    this.own = new OwnAddresses(dataNode::getDatanodeId, this::furtherAddresses);
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
  public static NdnDataNode start(DataNode dataNode, Settings settings, XceiverStarter xceivers)
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

  private void open(XceiverStarter xceivers) throws IOException {
    String refusal = DataProtection.againstServing(dataNode.getConf());
    secured = DataProtection.blockTokens(dataNode.getConf());
    if (refusal.isEmpty()) {
      BlockTokens tokens = null;
      if (secured) {
        tokens = new BlockTokens(dataNode.getBlockPoolTokenSecretManager());
        replicas = new GuardedReplicas(nodes.reads(), dataNode, tokens);
        logSecured();
      } else {
        replicas = new ReplicaResolver(nodes.reads(), dataNode);
      }
      acceptor = acceptor(tokens, xceivers);
      address = acceptor.address();
      LOG.info("named data: connections are accepted at {}", address);
    } else {
      LOG.info("named data is off on this DataNode: {}", refusal);
    }
    announcer = new Announcer(nodes.reads().names(), own, publisher(record(refusal).encode()));
  }

  private Acceptor acceptor(BlockTokens tokens, XceiverStarter xceivers) throws IOException {
    return new Acceptor(
        settings.dataNodeAddress(),
        accepted -> new NamedPeer(accepted.socket(), settings, nodes, replicas, tokens, own),
        new PeerHandoff(TransportNames.NDN, xceivers));
  }

  private void logSecured() {
    LOG.info("named data: writes and reads are secured by block tokens");
    String missing = DataProtection.againstSecuredWrites(dataNode.getConf());
    if (!missing.isEmpty()) {
      LOG.warn("named data: this DataNode passes writes on by stock TCP: {}", missing);
    }
  }

  /** Where the stock port takes connections at every address, a client may know any of them. */
  private Set<String> furtherAddresses() {
    boolean anywhere = dataNode.getXferAddress().getAddress().isAnyLocalAddress();
    return anywhere ? OwnAddresses.ofThisHost() : Set.of();
  }

  private Announcer.Publisher publisher(byte[] record) {
    return new Announcer.Publisher() {
      @Override
      public long publish(String name) throws IOException {
        return Native.publishStatic(nodes.reads().handle(), name, record, RECORD_FRESH_MS);
      }

      @Override
      public void withdraw(long published) {
        Native.unpublish(published);
      }
    };
  }

  private DataNodeRecord record(String refusal) {
    if (!refusal.isEmpty()) {
      return new DataNodeRecord(Preamble.VERSION, false, "", 0, refusal);
    }
    return new DataNodeRecord(
        Preamble.VERSION,
        true,
        address.getAddress().isAnyLocalAddress() ? "" : address.getAddress().getHostAddress(),
        address.getPort(),
        "",
        secured);
  }

  @Override
  public void close() {
    if (announcer != null) {
      announcer.close();
    }
    if (acceptor != null) {
      acceptor.close();
    }
    if (replicas != null) {
      replicas.close();
    }
    nodes.close();
  }
}

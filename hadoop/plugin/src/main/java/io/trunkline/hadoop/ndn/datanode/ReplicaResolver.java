package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.ndn.Native;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.util.LogLimit;
import java.io.File;
import java.io.IOException;
import org.apache.hadoop.hdfs.protocol.BlockLocalPathInfo;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.hdfs.server.common.HdfsServerConstants.ReplicaState;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.datanode.Replica;
import org.apache.hadoop.hdfs.server.datanode.fsdataset.FsDatasetSpi;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells the native library where the DataNode's finalized replicas lie, when somebody asks for one
 * by name. The library reads the files by itself.
 */
final class ReplicaResolver implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(ReplicaResolver.class);
  private static final LogLimit GUARDED = new LogLimit();
  private static final int WAIT_MS = 500;
  private static final long PAUSE_MS = 1000;

  private final DataNode dataNode;
  private final long source;
  private final RequestLoop loop;

  /**
   * Begins to answer.
   *
   * @param node the forwarder
   * @param dataNode holds the replicas; it has none before it has registered
   * @throws IOException when the forwarder is down
   */
  ReplicaResolver(NdnNode node, DataNode dataNode) throws IOException {
    this.dataNode = dataNode;
    source =
        Native.blockSourceOpen(
            node.handle(),
            node.names().blocks(),
            node.settings().segmentBytes(),
            node.settings().dataNodeOpenReplicas());
    loop = new RequestLoop(() -> Native.blockSourceNext(source, WAIT_MS), this::answer, PAUSE_MS);
  }

  private void answer(String request) {
    ReplicaFiles files = null;
    try {
      files = find(request);
    } catch (IOException | RuntimeException e) {
      LOG.debug("{}: not served by name: {}", request, e.toString());
    }
    if (files == null) {
      Native.blockSourceAnswer(source, request, null, null, 0, 0);
    } else {
      Native.blockSourceAnswer(
          source, request, files.block, files.meta, files.length, files.genstamp);
    }
  }

  private record ReplicaFiles(String block, String meta, long length, long genstamp) {}

  /** Finds a replica that is finalized before and after its files were looked up. */
  private ReplicaFiles find(String request) throws IOException {
    String[] parts = request.split(" ");
    if (parts.length != 3) {
      throw new IOException("not \"pool block genstamp\"");
    }
    long block = Long.parseLong(parts[1]);
    long genstamp = Long.parseLong(parts[2]);
    // Anybody may ask for any pool. Stock code keeps a lock for ever, and writes a warning, for
    // each pool that it is asked about and does not know.
    FsDatasetSpi<?> dataset = dataNode.getFSDataset();
    if (dataset == null || !dataNode.isBPServiceAlive(parts[0])) {
      return null;
    }
    // The NameNode says whether a pool's blocks need tokens; this DataNode's configuration may not.
    if (dataNode.getBlockPoolTokenSecretManager().isBlockPoolRegistered(parts[0])) {
      if (GUARDED.allows()) {
        LOG.warn(
            "named data: blocks of {} are not read by name, as its NameNode wants block tokens: set"
                + " dfs.block.access.token.enable on this DataNode, too",
            parts[0]);
      }
      return null;
    }
    Replica replica = finalized(dataset, parts[0], block);
    if (replica == null || genstamp >= 0 && genstamp != replica.getGenerationStamp()) {
      return null;
    }
    long length = replica.getNumBytes();
    ExtendedBlock extended =
        new ExtendedBlock(parts[0], block, length, replica.getGenerationStamp());
    BlockLocalPathInfo paths = dataset.getBlockLocalPathInfo(extended);
    Replica after = finalized(dataset, parts[0], block);
    if (after == null
        || after.getGenerationStamp() != replica.getGenerationStamp()
        || after.getNumBytes() != length
        || !new File(paths.getBlockPath()).isFile()) {
      return null;
    }
    return new ReplicaFiles(
        paths.getBlockPath(), paths.getMetaPath(), length, replica.getGenerationStamp());
  }

  /** The one public way to a replica's state is marked as deprecated, without another in place. */
  @SuppressWarnings("deprecation")
  private static Replica finalized(FsDatasetSpi<?> dataset, String pool, long block) {
    Replica replica = dataset.getReplica(pool, block);
    return replica != null && replica.getState() == ReplicaState.FINALIZED ? replica : null;
  }

  /** A block is about to be written to: what was answered for it holds no more. */
  void forget(String pool, long block) {
    Native.blockSourceInvalidate(source, pool, block);
  }

  @Override
  public void close() {
    loop.stop();
    Native.blockSourceClose(source);
    loop.close();
  }
}

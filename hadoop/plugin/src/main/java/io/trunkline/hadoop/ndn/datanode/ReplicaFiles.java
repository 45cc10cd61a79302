package io.trunkline.hadoop.ndn.datanode;

import java.io.File;
import java.io.IOException;
import org.apache.hadoop.hdfs.protocol.BlockLocalPathInfo;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.hdfs.server.common.HdfsServerConstants.ReplicaState;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.datanode.Replica;
import org.apache.hadoop.hdfs.server.datanode.fsdataset.FsDatasetSpi;

/**
 * Where a finalized replica lies.
 *
 * @param block path of the block file
 * @param meta path of its checksum file
 * @param length its length in bytes
 * @param genstamp its generation stamp
 */
record ReplicaFiles(String block, String meta, long length, long genstamp) {
  /**
   * Finds a replica that is finalized before and after its files were looked up.
   *
   * @param dataNode holds it; it has none before it has registered
   * @param pool block pool, of whoever asks
   * @param block block id
   * @param genstamp generation stamp wanted, or -1
   * @return null when there is none
   * @throws IOException when its files are not to be had
   */
  static ReplicaFiles find(DataNode dataNode, String pool, long block, long genstamp)
      throws IOException {
    // Anybody may ask for any pool. Stock code keeps a lock for ever, and writes a warning, for
    // each pool that it is asked about and does not know.
    FsDatasetSpi<?> dataset = dataNode.getFSDataset();
    if (dataset == null || !dataNode.isBPServiceAlive(pool)) {
      return null;
    }
    Replica replica = finalized(dataset, pool, block);
    if (replica == null || genstamp >= 0 && genstamp != replica.getGenerationStamp()) {
      return null;
    }
    long length = replica.getNumBytes();
    ExtendedBlock extended = new ExtendedBlock(pool, block, length, replica.getGenerationStamp());
    BlockLocalPathInfo paths = dataset.getBlockLocalPathInfo(extended);
    Replica after = finalized(dataset, pool, block);
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
}

package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.conf.TrafficCategory;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.wire.WriteOp;
import java.io.IOException;

/**
 * The forwarders that a DataNode's traffic by name goes through: one for all of it, or one for each
 * category where categories are marked.
 */
final class NodesByCategory implements AutoCloseable {
  private final NdnNode reads;
  private final NdnNode writes;
  private final NdnNode replication;

  /**
   * Starts them.
   *
   * @param settings the settings
   * @throws IOException when one cannot be started
   */
  NodesByCategory(Settings settings) throws IOException {
    NdnNode first = NdnNode.acquire(settings, TrafficCategory.CLIENT_READ);
    NdnNode second = null;
    NdnNode third = null;
    try {
      second = NdnNode.acquire(settings, TrafficCategory.CLIENT_WRITE);
      third = NdnNode.acquire(settings, TrafficCategory.REPLICATION);
    } finally {
      if (third == null) {
        first.close();
        if (second != null) {
          second.close();
        }
      }
    }
    reads = first;
    writes = second;
    replication = third;
  }

  /** Serves replicas, and says how the DataNode is reached. */
  NdnNode reads() {
    return reads;
  }

  /** Pulls the bodies of a write. */
  NdnNode of(WriteOp op) {
    return op.firstHop() ? writes : replication;
  }

  @Override
  public void close() {
    reads.close();
    writes.close();
    replication.close();
  }
}

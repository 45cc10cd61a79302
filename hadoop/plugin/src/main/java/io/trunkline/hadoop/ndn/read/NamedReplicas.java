package io.trunkline.hadoop.ndn.read;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.mark.Opener;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.transport.NotServed;
import java.io.IOException;
import org.apache.hadoop.hdfs.ReplicaAccessor;

/** Opens finalized replicas for reading by name. */
public final class NamedReplicas {
  private NamedReplicas() {}

  /**
   * Opens a replica.
   *
   * @param settings the settings
   * @param pool block pool
   * @param block block id
   * @param genstamp generation stamp
   * @param visibleLength end of what will be read
   * @return the replica
   * @throws NotServed when it cannot be had by name
   */
  public static ReplicaAccessor open(
      Settings settings, String pool, long block, long genstamp, long visibleLength)
      throws NotServed {
    NdnNode node;
    try {
      node = NdnNode.acquire(settings, Opener.read());
    } catch (IOException e) {
      throw new NotServed(Fallback.NODE_DOWN, e.getMessage());
    }
    boolean opened = false;
    try {
      ReplicaMetadata metadata = find(node, pool, block, genstamp, visibleLength);
      NamedReplica replica = new NamedReplica(node, pool, block, metadata, visibleLength);
      TransferStats.get().add(Counter.NAMED_READS);
      opened = true;
      return replica;
    } catch (IOException e) {
      throw new NotServed(Fallback.NODE_DOWN, e.getMessage());
    } finally {
      if (!opened) {
        node.close();
      }
    }
  }

  private static ReplicaMetadata find(
      NdnNode node, String pool, long block, long genstamp, long visibleLength)
      throws NotServed, IOException {
    String paused = node.health().paused(NamedReplica.id(pool, block, genstamp));
    if (paused != null) {
      throw new NotServed(Fallback.PLANE_PAUSED, paused);
    }
    if (!node.routerUp()) {
      throw new NotServed(Fallback.ROUTER_DOWN, node.settings().face());
    }
    ReplicaMetadata metadata = MetadataCache.get(node, pool, block, genstamp);
    if (metadata == null) {
      throw new NotServed(Fallback.NO_METADATA, "");
    }
    if (metadata.genstamp() != genstamp || metadata.length() < visibleLength) {
      throw new NotServed(
          Fallback.OTHER_REPLICA,
          metadata + ", asked for genstamp " + genstamp + " and " + visibleLength + " bytes");
    }
    if (metadata.manifest() == null) {
      throw new NotServed(Fallback.NO_MANIFEST, "");
    }
    return metadata;
  }
}

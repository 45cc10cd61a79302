package io.trunkline.hadoop.ndn.read;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.mark.Opener;
import io.trunkline.hadoop.ndn.ClosedException;
import io.trunkline.hadoop.ndn.Names;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.transport.NotServed;
import io.trunkline.hadoop.wire.BlockToken;
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
   * @param token the block's, null where it has none
   * @return the replica
   * @throws NotServed when it cannot be had by name
   */
  public static ReplicaAccessor open(
      Settings settings,
      String pool,
      long block,
      long genstamp,
      long visibleLength,
      BlockToken token)
      throws NotServed {
    NdnNode node;
    try {
      node = NdnNode.acquire(settings, Opener.read());
    } catch (IOException e) {
      throw new NotServed(Fallback.NODE_DOWN, e.getMessage());
    }
    boolean opened = false;
    FoundReplica found = null;
    try {
      refuseNow(node, NamedReplica.id(pool, block, genstamp));
      found =
          token == null
              ? find(node, pool, block, genstamp)
              : find(node, pool, block, genstamp, visibleLength, token);
      refuseOther(found.metadata(), genstamp, visibleLength);
      if (token == null && found.metadata().manifest() == null) {
        throw new NotServed(Fallback.NO_MANIFEST, "");
      }
      NamedReplica replica = new NamedReplica(node, pool, block, found, visibleLength);
      TransferStats.get().add(Counter.NAMED_READS);
      opened = true;
      return replica;
    } catch (IOException e) {
      throw new NotServed(Fallback.NODE_DOWN, e.getMessage());
    } finally {
      if (!opened) {
        if (found != null) {
          found.wipe();
        }
        node.close();
      }
    }
  }

  private static void refuseNow(NdnNode node, String id) throws NotServed {
    String paused = node.health().paused(id);
    if (paused != null) {
      throw new NotServed(Fallback.PLANE_PAUSED, paused);
    }
    if (!node.routerUp()) {
      throw new NotServed(Fallback.ROUTER_DOWN, node.settings().face());
    }
  }

  private static FoundReplica find(NdnNode node, String pool, long block, long genstamp)
      throws NotServed, IOException {
    ReplicaMetadata metadata = MetadataCache.get(node, pool, block, genstamp);
    if (metadata == null) {
      throw new NotServed(Fallback.NO_METADATA, "");
    }
    return new FoundReplica(
        metadata,
        node.names().version(pool, block, metadata.genstamp()),
        null,
        null,
        () -> MetadataCache.forget(node, pool, block, metadata.genstamp()));
  }

  private static FoundReplica find(
      NdnNode node, String pool, long block, long genstamp, long visibleLength, BlockToken token)
      throws NotServed, IOException {
    if (token.identifier().length > BlockToken.MAX_IDENTIFIER_BYTES) {
      throw new NotServed(
          Fallback.NO_CONTENT_KEY, "block token of " + token.identifier().length + " bytes");
    }
    ContentKeys.Granted granted = granted(node, pool, block, genstamp, token);
    String version = node.names().version(pool, block, genstamp);
    Runnable forget = () -> ContentKeys.forget(node, pool, block, genstamp, token, granted);
    FoundReplica.Renewal renewal =
        () -> {
          forget.run();
          FoundReplica found = null;
          try {
            found = find(node, pool, block, genstamp, visibleLength, token);
            refuseOther(found.metadata(), genstamp, visibleLength);
            return found;
          } catch (NotServed e) {
            if (found != null) {
              found.wipe();
            }
            return null;
          }
        };
    return new FoundReplica(
        granted.metadata(), Names.sealed(version, granted.keyId()), granted.key(), renewal, forget);
  }

  private static ContentKeys.Granted granted(
      NdnNode node, String pool, long block, long genstamp, BlockToken token)
      throws NotServed, IOException {
    ContentKeys.Granted granted;
    try {
      granted = ContentKeys.get(node, pool, block, genstamp, token);
    } catch (ClosedException e) {
      throw e;
    } catch (IOException e) {
      throw new NotServed(Fallback.NO_CONTENT_KEY, e.getMessage());
    }
    if (granted == null) {
      throw new NotServed(Fallback.NO_CONTENT_KEY, "");
    }
    return granted;
  }

  private static void refuseOther(ReplicaMetadata metadata, long genstamp, long visibleLength)
      throws NotServed {
    if (metadata.genstamp() != genstamp || metadata.length() < visibleLength) {
      throw new NotServed(
          Fallback.OTHER_REPLICA,
          metadata + ", asked for genstamp " + genstamp + " and " + visibleLength + " bytes");
    }
  }
}

package io.trunkline.hadoop.ndn.read;

import io.trunkline.hadoop.ndn.Native;
import io.trunkline.hadoop.ndn.NdnNode;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * Remembers for a short while what was found of replicas, so that many small reads of one block do
 * not ask each time. A finalized replica of one generation stamp never changes.
 */
final class MetadataCache {
  private record Key(String root, String pool, long block, long genstamp) {}

  private record Entry(ReplicaMetadata metadata, long expiresNanos) {
    int weight() {
      return metadata == null ? 200 : metadata.weight();
    }
  }

  /** Most bytes remembered: the digests of 64 GiB of blocks, in segments of default size. */
  private static final long MAX_BYTES = 16L << 20;

  private static final long FOUND_NANOS = TimeUnit.SECONDS.toNanos(30);
  private static final long MISSED_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

  /** Guarded by itself, as is the sum of their weights. */
  private static final Map<Key, Entry> ENTRIES = new LinkedHashMap<>(64, 0.75f, true);

  private static long bytes;

  private MetadataCache() {}

  /**
   * What is known of a replica.
   *
   * @param node the forwarder
   * @param pool block pool
   * @param block block id
   * @param genstamp generation stamp
   * @return the metadata of whatever generation stamp was found, or null when nobody answers
   * @throws IOException when the plane is down or the answer is malformed
   */
  static ReplicaMetadata get(NdnNode node, String pool, long block, long genstamp)
      throws IOException {
    Key key = new Key(node.settings().root(), pool, block, genstamp);
    synchronized (ENTRIES) {
      Entry entry = ENTRIES.get(key);
      if (entry != null && System.nanoTime() - entry.expiresNanos < 0) {
        return entry.metadata;
      }
    }
    byte[][] manifest = new byte[1][];
    long[] numbers =
        Native.blockMetadata(
            node.handle(),
            node.names().metadata(pool, block),
            manifest,
            node.settings().discoveryTimeoutMs());
    ReplicaMetadata metadata = numbers == null ? null : ReplicaMetadata.of(numbers, manifest[0]);
    boolean found = metadata != null && metadata.genstamp() == genstamp;
    put(key, new Entry(metadata, System.nanoTime() + (found ? FOUND_NANOS : MISSED_NANOS)));
    return metadata;
  }

  private static void put(Key key, Entry entry) {
    synchronized (ENTRIES) {
      remove(key);
      ENTRIES.put(key, entry);
      bytes += entry.weight();
      while (bytes > MAX_BYTES) {
        remove(ENTRIES.keySet().iterator().next());
      }
    }
  }

  private static void remove(Key key) {
    Entry entry = ENTRIES.remove(key);
    if (entry != null) {
      bytes -= entry.weight();
    }
  }

  /**
   * Forgets a replica that could not be read.
   *
   * @param node the forwarder
   * @param pool block pool
   * @param block block id
   * @param genstamp generation stamp
   */
  static void forget(NdnNode node, String pool, long block, long genstamp) {
    synchronized (ENTRIES) {
      remove(new Key(node.settings().root(), pool, block, genstamp));
    }
  }
}

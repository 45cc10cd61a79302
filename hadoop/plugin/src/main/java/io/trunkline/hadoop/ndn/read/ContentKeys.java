package io.trunkline.hadoop.ndn.read;

import io.trunkline.hadoop.ndn.Native;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.ndn.wire.WriteKey;
import io.trunkline.hadoop.wire.BlockToken;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongSupplier;
import org.apache.hadoop.hdfs.security.token.block.BlockTokenIdentifier;

/**
 * Asks for the keys of guarded blocks, and remembers them for a short while, so that many small
 * reads of one block do not ask each time. A key is remembered for the token that it was asked with
 * and for no other: users of one JVM have tokens of their own.
 */
final class ContentKeys {
  /**
   * What a reader is given.
   *
   * @param metadata what the replica is
   * @param keyId names the key
   * @param key what its segments are sealed with
   */
  record Granted(ReplicaMetadata metadata, byte[] keyId, WriteKey key) {
    /** The same with a key of its own, so that each can be wiped when it is let go of. */
    Granted copy() {
      return new Granted(metadata, keyId, new WriteKey(key.bytes().clone()));
    }

    @Override
    public String toString() {
      return "Granted(" + metadata + ")";
    }
  }

  private static final int MAX_ENTRIES = 4096;
  private static final long FOUND_MS = 30_000;
  private static final long MISSED_MS = 500;
  private static final KeyCache CACHE = new KeyCache(MAX_ENTRIES, System::nanoTime);

  /** Whether what has expired will be looked for, though nobody asks for a key. */
  private static final AtomicBoolean SWEEPING = new AtomicBoolean();

  private ContentKeys() {}

  /**
   * What is given for a token.
   *
   * @param node the forwarder
   * @param pool block pool
   * @param block block id
   * @param genstamp generation stamp
   * @param token says that its holder may read
   * @return null when nobody answers, or nobody gives the key for this token; the key is the
   *     caller's to wipe
   * @throws IOException when the plane is down, or what answers does not know the token
   */
  static Granted get(NdnNode node, String pool, long block, long genstamp, BlockToken token)
      throws IOException {
    Granted granted =
        get(
            CACHE,
            key(node, pool, block, genstamp, token),
            token.identifier(),
            System::currentTimeMillis,
            () -> ask(node, node.names().version(pool, block, genstamp), token));
    sweepLater();
    return granted;
  }

  /** Asks DataNodes. */
  @FunctionalInterface
  interface Question {
    /** What they give, null for nothing. */
    Granted ask() throws IOException;
  }

  /**
   * What is remembered, or else asked for. Whether a token is good is for DataNodes to say, by
   * their clocks; this process's own only shortens for how long their answer is remembered.
   *
   * @param cache what is remembered
   * @param key what is asked for
   * @param identifier the token's
   * @param clockMs this process's clock, in milliseconds of the epoch
   * @param question how it is asked for
   */
  static Granted get(
      KeyCache cache, KeyCache.Key key, byte[] identifier, LongSupplier clockMs, Question question)
      throws IOException {
    KeyCache.Entry known = cache.get(key);
    if (known != null) {
      return known.granted();
    }
    Granted granted = question.ask();
    if (granted == null) {
      cache.put(key, null, TimeUnit.MILLISECONDS.toNanos(MISSED_MS));
      return null;
    }
    Granted own = granted.copy();
    long forMs = Math.min(FOUND_MS, leftMs(identifier, clockMs.getAsLong()));
    cache.put(key, granted, TimeUnit.MILLISECONDS.toNanos(forMs));
    return own;
  }

  private static Granted ask(NdnNode node, String version, BlockToken token) throws IOException {
    byte[][] given = new byte[2][];
    long[] numbers =
        Native.contentKey(
            node.handle(),
            version,
            token.identifier(),
            token.password(),
            given,
            node.settings().discoveryTimeoutMs());
    return numbers == null
        ? null
        : new Granted(ReplicaMetadata.of(numbers, null), given[0], new WriteKey(given[1]));
  }

  /** So that no key stays in memory for long after nobody asks for any. */
  private static void sweepLater() {
    if (SWEEPING.compareAndSet(false, true)) {
      CompletableFuture.delayedExecutor(FOUND_MS, TimeUnit.MILLISECONDS)
          .execute(
              () -> {
                SWEEPING.set(false);
                if (CACHE.sweep()) {
                  sweepLater();
                }
              });
    }
  }

  /** How long a token is still good for, in milliseconds; 0 when it does not say. */
  private static long leftMs(byte[] identifier, long nowMs) {
    BlockTokenIdentifier token = new BlockTokenIdentifier();
    try {
      token.readFields(new DataInputStream(new ByteArrayInputStream(identifier)));
    } catch (IOException | RuntimeException e) {
      return 0;
    }
    return token.getExpiryDate() <= nowMs ? 0 : token.getExpiryDate() - nowMs;
  }

  /**
   * Forgets the key of a replica that could not be read, unless another was given meanwhile.
   *
   * @param node the forwarder
   * @param pool block pool
   * @param block block id
   * @param genstamp generation stamp
   * @param token what it was asked with
   * @param granted what was given
   */
  static void forget(
      NdnNode node, String pool, long block, long genstamp, BlockToken token, Granted granted) {
    CACHE.forget(key(node, pool, block, genstamp, token), granted.keyId());
  }

  private static KeyCache.Key key(
      NdnNode node, String pool, long block, long genstamp, BlockToken token) {
    return new KeyCache.Key(node.settings().root(), pool, block, genstamp, digest(token));
  }

  private static ByteBuffer digest(BlockToken token) {
    MessageDigest sha256;
    try {
      sha256 = MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JVM has SHA-256", e);
    }
    sha256.update(ByteBuffer.allocate(Integer.BYTES).putInt(token.identifier().length).array());
    sha256.update(token.identifier());
    return ByteBuffer.wrap(sha256.digest(token.password()));
  }
}

package io.trunkline.hadoop.ndn.read;

import io.trunkline.hadoop.ndn.read.ContentKeys.Granted;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.LongSupplier;

/**
 * The content keys that readers were given, for a while each. What is given out is a copy, the
 * reader's to wipe; what is forgotten is wiped here.
 */
final class KeyCache {
  /**
   * What a key was asked for with.
   *
   * @param root names' first component
   * @param pool block pool
   * @param block block id
   * @param genstamp generation stamp
   * @param tokensDigest not the token itself: its password is kept no longer than need be
   */
  record Key(String root, String pool, long block, long genstamp, ByteBuffer tokensDigest) {}

  /**
   * What is remembered.
   *
   * @param granted what was given, null when nothing was
   */
  record Entry(Granted granted) {}

  private record Held(Granted granted, long expiresNanos) {
    void wipe() {
      if (granted != null) {
        granted.key().wipe();
      }
    }
  }

  private final int maxEntries;
  private final LongSupplier nanoClock;

  private final Map<Key, Held> entries = new LinkedHashMap<>(64, 0.75f, true);

  /**
   * A cache of nothing.
   *
   * @param maxEntries most that are remembered, a few hundred bytes each; the least recently used
   *     go first
   * @param nanoClock monotonic clock in nanoseconds
   */
  KeyCache(int maxEntries, LongSupplier nanoClock) {
    this.maxEntries = maxEntries;
    this.nanoClock = nanoClock;
  }

  /**
   * What is remembered.
   *
   * @param key what is asked for
   * @return null when nothing is, or no longer
   */
  synchronized Entry get(Key key) {
    sweep();
    Held held = entries.get(key);
    return held == null ? null : new Entry(held.granted == null ? null : held.granted.copy());
  }

  /**
   * Remembers an answer.
   *
   * @param key what was asked for
   * @param granted what was given, the cache's from now on; null when nothing was
   * @param forNanos for how long, in nanoseconds
   */
  synchronized void put(Key key, Granted granted, long forNanos) {
    sweep();
    wipe(entries.put(key, new Held(granted, nanoClock.getAsLong() + forNanos)));
    if (entries.size() > maxEntries) {
      wipe(entries.remove(entries.keySet().iterator().next()));
    }
  }

  /**
   * Forgets an answer, unless there has been another one.
   *
   * @param key what was asked for
   * @param keyId what was given
   */
  synchronized void forget(Key key, byte[] keyId) {
    Held held = entries.get(key);
    if (held != null && held.granted != null && Arrays.equals(held.granted.keyId(), keyId)) {
      wipe(entries.remove(key));
    }
  }

  /**
   * Forgets what is too old.
   *
   * @return whether something is left
   */
  synchronized boolean sweep() {
    long now = nanoClock.getAsLong();
    entries
        .values()
        .removeIf(
            held -> {
              boolean over = now - held.expiresNanos >= 0;
              if (over) {
                held.wipe();
              }
              return over;
            });
    return !entries.isEmpty();
  }

  private static void wipe(Held held) {
    if (held != null) {
      held.wipe();
    }
  }
}

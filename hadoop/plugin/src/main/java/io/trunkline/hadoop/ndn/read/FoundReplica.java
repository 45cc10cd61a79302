package io.trunkline.hadoop.ndn.read;

import io.trunkline.hadoop.ndn.wire.WriteKey;
import java.io.IOException;

/**
 * A replica that can be read by name.
 *
 * @param metadata what it is
 * @param prefix URI of what its segments lie below
 * @param key what they are sealed with, null where they are not; nobody else's
 * @param renewal finds it anew, null where its name stays what it is
 * @param forget has what is remembered of it forgotten, when it could not be read after all
 */
record FoundReplica(
    ReplicaMetadata metadata, String prefix, WriteKey key, Renewal renewal, Runnable forget) {
  /** Has the key no more. */
  void wipe() {
    if (key != null) {
      key.wipe();
    }
  }

  /**
   * Asks for the block's key once more. DataNodes forget keys of writes, when they are restarted or
   * many writes have followed, and block keys expire; the same bytes are served under another key
   * then.
   */
  @FunctionalInterface
  interface Renewal {
    /**
     * What is found now.
     *
     * @return null when nobody answers, or has what is being read
     * @throws IOException when the plane is down
     */
    FoundReplica renewed() throws IOException;
  }
}

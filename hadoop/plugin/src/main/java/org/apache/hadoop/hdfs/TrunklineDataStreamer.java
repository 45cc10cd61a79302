package org.apache.hadoop.hdfs;

import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.security.token.Token;

/** Shim: what this thread's writer shows to its own package, if this thread is a writer's. */
public final class TrunklineDataStreamer {
  private TrunklineDataStreamer() {}

  /**
   * The block token of the block that this thread writes.
   *
   * @return the token, or null
   */
  public static Token<?> blockToken() {
    return Thread.currentThread() instanceof DataStreamer streamer
        ? streamer.getBlockToken()
        : null;
  }

  /**
   * The file that this thread writes.
   *
   * @return what the NameNode said of it when it was opened, or null
   */
  public static HdfsFileStatus file() {
    return Thread.currentThread() instanceof DataStreamer streamer ? streamer.stat : null;
  }
}

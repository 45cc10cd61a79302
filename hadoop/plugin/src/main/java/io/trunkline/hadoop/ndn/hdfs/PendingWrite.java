package io.trunkline.hadoop.ndn.hdfs;

import io.trunkline.hadoop.ndn.write.Inflow;
import io.trunkline.hadoop.util.LogLimit;
import io.trunkline.hadoop.wire.BlockToken;
import org.apache.hadoop.hdfs.TrunklineDataStreamer;
import org.apache.hadoop.hdfs.protocol.HdfsFileStatus;
import org.apache.hadoop.security.token.Token;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The write that a thread is about to open a connection for, and the block token which it is going
 * to send there. Both are known before the header is written: a DataNode's thread passes on a write
 * that has come in, and an HDFS client has a thread for each file that it writes.
 */
final class PendingWrite {
  private static final Logger LOG = LoggerFactory.getLogger(PendingWrite.class);
  private static final LogLimit LINES = new LogLimit();

  /** The one method of a writer's thread that opens connections to write a block. */
  private static final String WRITES = "createBlockOutputStream";

  private static final String STREAMER = "org.apache.hadoop.hdfs.DataStreamer";

  /** From that method down to here. */
  private static final int NEAR = 24;

  private PendingWrite() {}

  /** The token of the write, or null: it has none, it is to one replica, or this is no write. */
  static BlockToken token() {
    BlockToken passedOn = Inflow.tokenOfThread();
    return passedOn != null ? passedOn : ofWriter();
  }

  private static BlockToken ofWriter() {
    if (!Thread.currentThread().getClass().getName().startsWith("org.apache.hadoop.hdfs.")) {
      return null;
    }
    try {
      Token<?> token = TrunklineDataStreamer.blockToken();
      if (token == null || token.getIdentifier().length == 0 || !writes()) {
        return null;
      }
      HdfsFileStatus file = TrunklineDataStreamer.file();
      boolean shared =
          file != null && file.getReplication() > 1 && file.getErasureCodingPolicy() == null;
      return shared ? new BlockToken(token.getIdentifier(), token.getPassword()) : null;
    } catch (LinkageError e) {
      if (LINES.allows()) {
        LOG.warn(
            "named data: block tokens cannot be seen, writes that have one go by stock TCP; the"
                + " plug-in's jar has to be where Hadoop's jars are: {}",
            e.toString());
      }
      return null;
    }
  }

  private static boolean writes() {
    return StackWalker.getInstance()
        .walk(
            frames ->
                frames
                    .limit(NEAR)
                    .anyMatch(
                        f ->
                            f.getMethodName().equals(WRITES) && f.getClassName().equals(STREAMER)));
  }
}

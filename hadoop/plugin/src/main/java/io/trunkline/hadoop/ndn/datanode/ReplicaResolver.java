package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.ndn.Native;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.util.LogLimit;
import io.trunkline.hadoop.wire.WriteOp;
import java.io.IOException;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells the native library where the DataNode's finalized replicas lie, when somebody asks for one
 * by name in a cluster without block tokens. The library reads the files by itself.
 */
final class ReplicaResolver implements ServedReplicas {
  private static final Logger LOG = LoggerFactory.getLogger(ReplicaResolver.class);
  private static final LogLimit GUARDED = new LogLimit();
  private static final int WAIT_MS = 500;
  private static final long PAUSE_MS = 1000;

  private final DataNode dataNode;
  private final long source;
  private final RequestLoop loop;

  /**
   * Begins to answer.
   *
   * @param node the forwarder
   * @param dataNode holds the replicas; it has none before it has registered
   * @throws IOException when the forwarder is down
   */
  ReplicaResolver(NdnNode node, DataNode dataNode) throws IOException {
    this.dataNode = dataNode;
    source =
        Native.blockSourceOpen(
            node.handle(),
            node.names().blocks(),
            node.settings().segmentBytes(),
            node.settings().dataNodeOpenReplicas(),
            false);
    loop = new RequestLoop(() -> Native.blockSourceNext(source, WAIT_MS), this::answer, PAUSE_MS);
  }

  private void answer(String request) {
    ReplicaFiles files = null;
    try {
      files = find(request);
    } catch (IOException | RuntimeException e) {
      LOG.debug("{}: not served by name: {}", request, e.toString());
    }
    if (files == null) {
      Native.blockSourceAnswer(source, request, null, null, 0, 0);
    } else {
      Native.blockSourceAnswer(
          source, request, files.block(), files.meta(), files.length(), files.genstamp());
    }
  }

  private ReplicaFiles find(String request) throws IOException {
    String[] parts = request.split(" ");
    if (parts.length != 3) {
      throw new IOException("not \"pool block genstamp\"");
    }
    // The NameNode says whether a pool's blocks need tokens; this DataNode's configuration may not.
    if (dataNode.getBlockPoolTokenSecretManager().isBlockPoolRegistered(parts[0])) {
      if (GUARDED.allows()) {
        LOG.warn(
            "named data: blocks of {} are not read by name, as its NameNode wants block tokens: set"
                + " dfs.block.access.token.enable on this DataNode, too",
            parts[0]);
      }
      return null;
    }
    long block = Long.parseLong(parts[1]);
    return ReplicaFiles.find(dataNode, parts[0], block, Long.parseLong(parts[2]));
  }

  @Override
  public WriteKeys.Write begins(WriteOp op, Preamble preamble) {
    Native.blockSourceInvalidate(source, op.pool(), op.block());
    return null;
  }

  @Override
  public void close() {
    loop.stop();
    Native.blockSourceClose(source);
    loop.close();
  }
}

package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.ndn.Native;
import io.trunkline.hadoop.ndn.NdnNode;
import java.io.IOException;

/** Pulls a stream that is still being written, ahead of its records. */
final class LivePull implements SegmentSource {
  private static final long NO_LAST = -1;

  private final long pull;

  LivePull(NdnNode node, String prefix, long first) throws IOException {
    pull =
        Native.pullOpen(
            node.handle(), prefix, first, node.settings().windowSegments(), true, NO_LAST);
  }

  @Override
  public int take(long segment, byte[] header, byte[] to, int off, int max, int timeoutMs)
      throws IOException {
    Native.pullKnown(pull, segment);
    return Native.pullTake(pull, segment, header, to, off, max, timeoutMs);
  }

  @Override
  public void close() {
    Native.pullClose(pull);
  }
}

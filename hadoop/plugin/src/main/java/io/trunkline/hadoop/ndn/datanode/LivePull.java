package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.ndn.Native;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.ndn.wire.SegmentCut.Piece;
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
  public void known(long upto) {
    Native.pullKnown(pull, upto);
  }

  @Override
  public boolean take(
      long segment,
      byte[] header,
      Piece piece,
      byte[] to,
      int off,
      byte[] digests,
      int digestAt,
      int timeoutMs)
      throws IOException {
    return Native.pullTakePiece(
        pull,
        segment,
        header,
        to,
        off + piece.sumsAt(),
        piece.sumsLength(),
        off + piece.dataAt(),
        piece.dataLength(),
        digests,
        digestAt,
        timeoutMs);
  }

  @Override
  public void close() {
    Native.pullClose(pull);
  }
}

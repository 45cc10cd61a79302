package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.ndn.Native;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.ndn.wire.SegmentCut.Piece;
import io.trunkline.hadoop.ndn.wire.WriteKey;
import java.io.IOException;

/** Pulls a stream that is still being written, ahead of its records. */
final class LivePull implements SegmentSource {
  private static final long NO_LAST = -1;

  private final long pull;
  private final boolean stream;
  private final WriteKeys.Write noted;

  /**
   * Begins to pull.
   *
   * @param node the forwarder
   * @param prefix name of the stream, without segment
   * @param segmentBytes data bytes of a segment
   * @param stream whether it is the writer's stream, or else the block
   * @param first first segment
   * @param key what segments are sealed with, null when they are not
   * @param noted takes note of the segments that come, null when nobody wants to know
   * @throws IOException when the plane is down
   */
  LivePull(
      NdnNode node,
      String prefix,
      int segmentBytes,
      boolean stream,
      long first,
      WriteKey key,
      WriteKeys.Write noted)
      throws IOException {
    this.stream = stream;
    this.noted = noted;
    pull =
        Native.pullOpen(
            node.handle(),
            prefix,
            segmentBytes,
            first,
            node.settings().windowSegments(segmentBytes),
            true,
            NO_LAST,
            key == null ? null : key.bytes(),
            stream ? 1 : 0);
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
    boolean came =
        Native.pullTakePiece(
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
    if (came && noted != null) {
      noted.took(stream, piece.header(), digests, digestAt, to, off + piece.sumsAt());
    }
    return came;
  }

  @Override
  public void close() {
    Native.pullClose(pull);
  }
}

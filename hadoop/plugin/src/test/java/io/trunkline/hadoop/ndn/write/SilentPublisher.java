package io.trunkline.hadoop.ndn.write;

import io.trunkline.hadoop.ndn.wire.SegmentCut.Piece;
import java.io.IOException;

/** Takes all that is published and keeps nothing; tests override what they look at. */
public class SilentPublisher implements Publisher {
  @Override
  public void block(
      long segment, Piece piece, byte[] body, int off, boolean more, byte[] digests, int digestAt)
      throws IOException {}

  @Override
  public void stream(
      long segment, Piece piece, byte[] body, int off, boolean more, byte[] digests, int digestAt)
      throws IOException {}

  @Override
  public boolean kept(boolean block, long segment, Piece piece, byte[] body) throws IOException {
    return false;
  }

  @Override
  public void starved() {}

  @Override
  public void blockAcknowledged(long upto) {}

  @Override
  public void streamAcknowledged(long upto) {}

  @Override
  public void close(boolean ended) {}
}

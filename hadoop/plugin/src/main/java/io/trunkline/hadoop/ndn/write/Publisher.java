package io.trunkline.hadoop.ndn.write;

import io.trunkline.hadoop.ndn.wire.SegmentCut.Piece;
import java.io.IOException;

/** Publishes the packet bodies of one write by name. */
public interface Publisher {
  /**
   * Publishes a segment of the block.
   *
   * @param segment number of the segment
   * @param piece the segment, and where it lies in its packet's body
   * @param body array with the packet's body
   * @param off where the body begins
   * @param more whether the next segment of the packet follows at once
   * @param digests where the segment's digest goes
   * @param digestAt where in it
   * @throws IOException when the plane does not take it
   */
  void block(
      long segment, Piece piece, byte[] body, int off, boolean more, byte[] digests, int digestAt)
      throws IOException;

  /**
   * Publishes a segment of this writer's stream.
   *
   * @param segment number of the segment
   * @param piece the segment, and where it lies in its packet's body
   * @param body array with the packet's body
   * @param off where the body begins
   * @param more whether the next segment of the packet follows at once
   * @param digests where the segment's digest goes
   * @param digestAt where in it
   * @throws IOException when the plane does not take it
   */
  void stream(
      long segment, Piece piece, byte[] body, int off, boolean more, byte[] digests, int digestAt)
      throws IOException;

  /**
   * Copies out a segment that was published and not acknowledged.
   *
   * @param block whether it is one of the block, or else of this writer's stream
   * @param segment number of the segment
   * @param piece the segment, and where it goes in its packet's body
   * @param body array that the packet's body goes to
   * @return false when it is not kept any more
   * @throws IOException when it is another segment
   */
  boolean kept(boolean block, long segment, Piece piece, byte[] body) throws IOException;

  /** A DataNode of the pipeline cannot get by name what was published. */
  void starved();

  /**
   * All DataNodes of the pipeline have segments of the block: they need not be kept any longer.
   *
   * @param upto number of the newest one
   */
  void blockAcknowledged(long upto);

  /**
   * All DataNodes of the pipeline have segments of this writer's stream.
   *
   * @param upto number of the newest one
   */
  void streamAcknowledged(long upto);

  /**
   * The connection has ended.
   *
   * @param ended whether the packet that ends the block had been sent
   */
  void close(boolean ended);
}

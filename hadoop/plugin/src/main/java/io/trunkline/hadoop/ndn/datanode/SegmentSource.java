package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.ndn.wire.SegmentCut.Piece;
import java.io.Closeable;
import java.io.IOException;

/** A stream of segments under one name; the edge between stock packets and the network. */
public interface SegmentSource extends Closeable {
  /**
   * Says that segments have been published, so that a missing one is a loss.
   *
   * @param upto number of the newest one
   */
  void known(long upto);

  /**
   * Waits a little for a segment. Unless it comes, whatever lies where the piece goes is void.
   *
   * @param segment its number; numbers rise, and may be skipped
   * @param header where its 24-byte header goes
   * @param piece what the segment should be, and where it goes in the packet's body
   * @param to array that the packet's body goes to
   * @param off where the body begins in it
   * @param digests array with the digest that the segment must have
   * @param digestAt where in it
   * @param timeoutMs how long to wait
   * @return false when the time has passed
   * @throws io.trunkline.hadoop.ndn.UnverifiedException when whoever answers has another segment
   * @throws IOException when the stream has failed, or the segment's lengths are others
   */
  boolean take(
      long segment,
      byte[] header,
      Piece piece,
      byte[] to,
      int off,
      byte[] digests,
      int digestAt,
      int timeoutMs)
      throws IOException;

  @Override
  void close();

  /** Opens streams. */
  @FunctionalInterface
  interface Opener {
    /**
     * Opens one.
     *
     * @param prefix name of the stream, without segment
     * @param stream whether it is the writer's stream, or else the block
     * @param first first segment
     * @return the stream
     * @throws IOException when the plane is down
     */
    SegmentSource open(String prefix, boolean stream, long first) throws IOException;
  }
}

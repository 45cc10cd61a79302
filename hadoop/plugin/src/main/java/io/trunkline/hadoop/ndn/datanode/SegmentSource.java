package io.trunkline.hadoop.ndn.datanode;

import java.io.Closeable;
import java.io.IOException;

/** A stream of segments under one name; the edge between stock packets and the network. */
public interface SegmentSource extends Closeable {
  /**
   * Waits a little for a segment.
   *
   * @param segment its number; numbers rise, and may be skipped
   * @param header where its 24-byte header goes
   * @param to where checksums and data go
   * @param off where in it
   * @param max most bytes to take
   * @param timeoutMs how long to wait
   * @return length of checksums and data, or -1 when the time has passed
   * @throws IOException when the stream has failed
   */
  int take(long segment, byte[] header, byte[] to, int off, int max, int timeoutMs)
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
     * @param first first segment
     * @return the stream
     * @throws IOException when the plane is down
     */
    SegmentSource open(String prefix, long first) throws IOException;
  }
}

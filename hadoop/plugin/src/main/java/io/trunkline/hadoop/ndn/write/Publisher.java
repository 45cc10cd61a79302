package io.trunkline.hadoop.ndn.write;

import java.io.IOException;

/** Publishes the packet bodies of one write by name. */
public interface Publisher {
  /**
   * Publishes a segment of the block.
   *
   * @param segment number of the segment
   * @param header its 24-byte header
   * @param body array with checksums and data
   * @param off where they begin
   * @param length of both, in bytes
   * @throws IOException when the plane does not take it
   */
  void block(long segment, byte[] header, byte[] body, int off, int length) throws IOException;

  /**
   * Publishes a segment of this writer's stream.
   *
   * @param segment number of the segment
   * @param header its 24-byte header
   * @param body array with checksums and data
   * @param off where they begin
   * @param length of both, in bytes
   * @throws IOException when the plane does not take it
   */
  void stream(long segment, byte[] header, byte[] body, int off, int length) throws IOException;

  /** Bytes have come back from the pipeline: it is alive. */
  void progressed();

  /**
   * The connection has ended.
   *
   * @param ended whether the packet that ends the block had been sent
   */
  void close(boolean ended);
}

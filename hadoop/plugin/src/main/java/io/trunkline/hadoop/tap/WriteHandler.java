package io.trunkline.hadoop.tap;

import java.io.IOException;
import java.nio.ByteBuffer;

/** Looks after a connection that carries a write, from the end of its op header on. */
public sealed interface WriteHandler permits PassThrough, HeadWatch, PacketRewriter {
  /**
   * Bytes have come back: the answer to the op header, then acknowledgements, which {@link
   * io.trunkline.hadoop.wire.AckReader} takes apart. Called by whoever reads, beside the writes.
   *
   * @param in holds them, and afterwards what stock code is to read of them, from the same place
   *     on; its position and limit are not moved
   * @param from where they begin
   * @param to where they end
   * @return how many bytes stock code is to read
   * @throws IOException when the connection has failed
   */
  default int answered(ByteBuffer in, int from, int to) throws IOException {
    return to - from;
  }

  /**
   * The connection has ended. Called once, beside whatever else is going on; a call that waits is
   * to return now.
   */
  default void close() {}
}

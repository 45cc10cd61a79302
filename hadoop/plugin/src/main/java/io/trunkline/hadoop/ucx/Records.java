package io.trunkline.hadoop.ucx;

import java.io.IOException;
import java.nio.ByteBuffer;

/**
 * What goes by TCP on a connection whose large writes go by UCX: records, in the order in which
 * they were written.
 *
 * <pre>
 *   by UCX (1 bit) | length (31 bits) | bytes, where the first bit is 0
 * </pre>
 *
 * Numbers are big-endian. The bytes of a record that says "by UCX" are the next so many of the UCX
 * stream. A record may be ended by a later write than the one that began it.
 */
final class Records {
  static final int HEAD_BYTES = 4;
  static final int BY_UCX = 1 << 31;

  /** Most bytes of a record that come by TCP. */
  static final int MAX_SMALL_BYTES = 1 << 20;

  private Records() {}

  /** Moves bytes from or into a buffer as far as that goes without waiting; 0 when it does not. */
  @FunctionalInterface
  interface Mover {
    int move(ByteBuffer bytes) throws IOException;
  }

  /** Moves so many bytes of the buffer at most. */
  static int moveAtMost(int most, ByteBuffer bytes, Mover mover) throws IOException {
    int limit = bytes.limit();
    bytes.limit(bytes.position() + Math.min(bytes.remaining(), most));
    try {
      return mover.move(bytes);
    } finally {
      bytes.limit(limit);
    }
  }
}

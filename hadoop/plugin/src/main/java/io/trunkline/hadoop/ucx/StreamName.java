package io.trunkline.hadoop.ucx;

import java.nio.ByteBuffer;

/**
 * Names a stream to whoever accepted it: what a TCP connection begins with that belongs to it.
 *
 * <pre>
 *   magic "TRKB" (4) | stream (4) | token (8)
 * </pre>
 *
 * @param token of the connection under it, which its acceptor has drawn at random
 * @param stream its number on that connection
 */
record StreamName(long token, int stream) {
  static final int BYTES = 16;

  private static final int MAGIC = 0x54524B42;

  ByteBuffer encode() {
    return ByteBuffer.allocate(BYTES).putInt(MAGIC).putInt(stream).putLong(token).flip();
  }

  /** Reads one; null when it is none. */
  static StreamName read(ByteBuffer from) {
    if (from.remaining() != BYTES || from.getInt() != MAGIC) {
      return null;
    }
    int stream = from.getInt();
    return new StreamName(from.getLong(), stream);
  }
}

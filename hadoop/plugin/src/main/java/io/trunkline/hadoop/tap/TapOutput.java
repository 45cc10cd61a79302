package io.trunkline.hadoop.tap;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.WritableByteChannel;

/** Bytes that are due on a connection and not yet taken by it. */
public final class TapOutput {
  private static final int INITIAL_BYTES = 1024;

  /** Kept ready for writing into; what is due lies from 0 to its position. */
  private ByteBuffer due = ByteBuffer.allocate(INITIAL_BYTES);

  /**
   * Makes sure that bytes fit.
   *
   * @param bytes that will be put
   * @return the buffer to put them in
   */
  public ByteBuffer reserve(int bytes) {
    if (due.remaining() < bytes) {
      ByteBuffer larger = ByteBuffer.allocate(Math.max(2 * due.capacity(), due.position() + bytes));
      due.flip();
      due = larger.put(due);
    }
    return due;
  }

  /**
   * Whether nothing is due.
   *
   * @return true when empty
   */
  public boolean isEmpty() {
    return due.position() == 0;
  }

  /**
   * Hands as much as possible to a channel.
   *
   * @param channel the channel; may take only a part
   * @return true when nothing is due any more
   * @throws IOException when the channel fails
   */
  public boolean drainTo(WritableByteChannel channel) throws IOException {
    if (isEmpty()) {
      return true;
    }
    due.flip();
    try {
      channel.write(due);
    } finally {
      due.compact();
    }
    return isEmpty();
  }
}

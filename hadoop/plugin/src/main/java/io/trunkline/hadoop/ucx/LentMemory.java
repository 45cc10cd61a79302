package io.trunkline.hadoop.ucx;

import java.nio.ByteBuffer;

/**
 * A waiting reader's own memory, into which UCX may move the next message. The reader must not
 * return while it does. Guarded by the {@link ReceiveSide} that it was lent to.
 */
final class LentMemory {
  /** The reader's buffer; its position stays until the message is taken. */
  final ByteBuffer target;

  final PooledBuffer memory;

  /** The message that is moved there, null while there is none. */
  Arrival arrival;

  /** Whether UCX may write there now. */
  boolean underWay;

  /**
   * Lent.
   *
   * @param target a direct buffer, used from its position to its limit
   */
  LentMemory(ByteBuffer target) {
    this.target = target;
    memory = BufferPool.lent(target.slice());
  }
}

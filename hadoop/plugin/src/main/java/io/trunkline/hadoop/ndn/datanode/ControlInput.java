package io.trunkline.hadoop.ndn.datanode;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.channels.ReadableByteChannel;

/**
 * The control connection as a DataNode reads it: buffered, with the stock read timeout, and with a
 * way to see without waiting that it has ended.
 */
final class ControlInput {
  private static final int BUFFER_BYTES = 16 * 1024;

  private final InputStream waiting;
  private final ReadableByteChannel ready;
  private final byte[] bytes = new byte[BUFFER_BYTES];

  /** What has come and was not taken lies between position and limit. */
  private final ByteBuffer buffer = ByteBuffer.wrap(bytes).limit(0);

  private boolean ended;

  /**
   * An input.
   *
   * @param waiting waits for bytes, as long as the read timeout lets it
   * @param ready the same connection, which does not wait
   */
  ControlInput(InputStream waiting, ReadableByteChannel ready) {
    this.waiting = waiting;
    this.ready = ready;
  }

  /** The bytes that have come; whoever takes some moves the position. */
  ByteBuffer buffer() {
    return buffer;
  }

  /**
   * Waits for more bytes.
   *
   * @return false at the end of the connection
   */
  boolean more() throws IOException {
    compact();
    if (ended) {
      return false;
    }
    int limit = buffer.limit();
    int count = waiting.read(bytes, limit, bytes.length - limit);
    if (count < 0) {
      ended = true;
      return false;
    }
    buffer.limit(limit + count);
    return true;
  }

  /**
   * Looks, without waiting, whether the connection has ended. With a full buffer it cannot tell.
   *
   * @return true when no more bytes will come
   */
  boolean hasEnded() throws IOException {
    poll();
    return ended;
  }

  /**
   * Takes the bytes that have come, without waiting.
   *
   * @return false when there are none, or no room for them
   */
  boolean poll() throws IOException {
    if (ended || buffer.remaining() == bytes.length) {
      return false;
    }
    compact();
    int position = buffer.position();
    int limit = buffer.limit();
    buffer.limit(bytes.length).position(limit);
    int count;
    try {
      count = ready.read(buffer);
    } finally {
      buffer.limit(Math.max(limit, buffer.position())).position(position);
    }
    if (count < 0) {
      ended = true;
    }
    return count > 0;
  }

  /**
   * Reads bytes as they are.
   *
   * @return how many, -1 at the end of the connection
   */
  int read(byte[] to, int off, int length) throws IOException {
    if (buffer.hasRemaining()) {
      int count = Math.min(length, buffer.remaining());
      buffer.get(to, off, count);
      return count;
    }
    if (ended) {
      return -1;
    }
    return waiting.read(to, off, length);
  }

  private void compact() throws IOException {
    if (!buffer.hasRemaining()) {
      buffer.clear().limit(0);
    } else if (buffer.limit() == bytes.length) {
      buffer.compact().flip();
      if (buffer.limit() == bytes.length) {
        throw new IOException("control connection carries something longer than " + bytes.length);
      }
    }
  }
}

package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.ndn.secure.RecordReader;
import io.trunkline.hadoop.ndn.secure.SecureSession;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.channels.ReadableByteChannel;
import java.util.Arrays;

/**
 * The control connection as a DataNode reads it: buffered, with the stock read timeout, and with a
 * way to see without waiting that it has ended. From where it has been made secure on, what it
 * carries is taken out of the records of its session.
 */
final class ControlInput {
  private static final int BUFFER_BYTES = 16 * 1024;

  private final InputStream waiting;
  private final ReadableByteChannel ready;
  private final byte[] bytes = new byte[BUFFER_BYTES];

  /** What has come and was not taken lies between position and limit. */
  private final ByteBuffer buffer = ByteBuffer.wrap(bytes).limit(0);

  /** Null until the connection is secure. */
  private RecordReader records;

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

  /**
   * All that comes from here on is in records.
   *
   * @param session opens them
   * @throws IOException when the other end has sent more than its part of the handshake
   */
  void secure(SecureSession session) throws IOException {
    if (buffer.hasRemaining()) {
      throw new IOException("more than a handshake came before it was answered");
    }
    records = new RecordReader(session);
  }

  /**
   * As {@link InputStream#read(byte[], int, int)}, out of records if need be. Reads the connection
   * once: returns 0 where what has come makes no record with something in it.
   */
  private int waitOnce(byte[] to, int off, int length) throws IOException {
    if (records == null) {
      return waiting.read(to, off, length);
    }
    if (!records.ready()) {
      ByteBuffer room = records.room();
      int count;
      try {
        count = waiting.read(room.array(), room.arrayOffset() + room.position(), room.remaining());
        room.position(room.position() + Math.max(0, count));
      } finally {
        records.came();
      }
      if (count < 0) {
        return -1;
      }
      if (!records.ready()) {
        return 0;
      }
    }
    return records.take(to, off, length);
  }

  /** As {@link ReadableByteChannel#read}, out of records if need be. */
  private int take(ByteBuffer to) throws IOException {
    if (records == null) {
      return ready.read(to);
    }
    while (!records.ready()) {
      int count;
      try {
        count = ready.read(records.room());
      } finally {
        records.came();
      }
      if (count <= 0) {
        return count;
      }
    }
    return records.take(to);
  }

  /** The bytes that have come; whoever takes some moves the position. */
  ByteBuffer buffer() {
    return buffer;
  }

  /** What was taken held secrets: the write's key, or its token. */
  void wipeTaken() {
    Arrays.fill(bytes, 0, buffer.position(), (byte) 0);
  }

  /**
   * Waits until something has come, be it a part of a record from which nothing can be taken yet:
   * whoever has a deadline looks at it after each call.
   *
   * @return false at the end of the connection
   */
  boolean more() throws IOException {
    compact();
    if (ended) {
      return false;
    }
    int limit = buffer.limit();
    int count = waitOnce(bytes, limit, bytes.length - limit);
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
      count = take(buffer);
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
    int count;
    do {
      count = waitOnce(to, off, length);
    } while (count == 0);
    return count;
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

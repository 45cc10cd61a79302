package io.trunkline.hadoop.ucx;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;

/**
 * Writes {@link Records}. A write becomes one record, whose head goes out together with its bytes
 * where they go by TCP, and before them where they go by UCX. Of a write that went out in part, the
 * rest is written by the next ones. One writer at a time; nothing waits.
 */
final class RecordsOut {
  /** TCP, as far as it takes something without waiting. */
  @FunctionalInterface
  interface Tcp {
    long write(ByteBuffer[] from) throws IOException;
  }

  /** Sends bytes of a file by UCX, as far as that goes without waiting. */
  @FunctionalInterface
  interface FileMover {
    int move(FileChannel file, long position, int count) throws IOException;
  }

  private final Tcp tcp;
  private final Records.Mover ucx;
  private final FileMover ucxFile;
  private final int smallBytes;
  private final ByteBuffer head = ByteBuffer.allocateDirect(Records.HEAD_BYTES).limit(0);
  private final ByteBuffer[] headAlone = {head};
  private final ByteBuffer[] headAndBytes = {head, null};
  private final Records.Mover small = this::small;

  /** What is left of the record. */
  private int left;

  private boolean byUcx;

  /**
   * A writer.
   *
   * @param smallBytes writes below go by TCP
   */
  RecordsOut(Tcp tcp, Records.Mover ucx, FileMover ucxFile, int smallBytes) {
    this.tcp = tcp;
    this.ucx = ucx;
    this.ucxFile = ucxFile;
    this.smallBytes = Math.min(smallBytes, Records.MAX_SMALL_BYTES);
  }

  /** Whether what is written next goes by UCX. */
  boolean waitsForUcx() {
    return left > 0 && byUcx && !head.hasRemaining();
  }

  /**
   * Writes as far as that goes.
   *
   * @return bytes taken
   */
  int write(ByteBuffer from) throws IOException {
    int start = from.position();
    while (from.hasRemaining()) {
      begin(from.remaining());
      if (!byUcx) {
        Records.moveAtMost(left, from, small);
      } else if (flushed()) {
        left -= Records.moveAtMost(left, from, ucx);
      }
      if (left > 0) {
        break;
      }
    }
    return from.position() - start;
  }

  /**
   * Writes bytes of a file as far as that goes.
   *
   * @return bytes taken
   * @throws EOFException when the file has ended
   */
  int write(FileChannel file, long position, int count) throws IOException {
    boolean large = left == 0 ? count >= smallBytes : byUcx;
    if (!large) {
      return write(bytesOf(file, position, left == 0 ? count : Math.min(left, count)));
    }
    begin(count);
    int sent = flushed() ? ucxFile.move(file, position, Math.min(left, count)) : 0;
    left -= sent;
    return sent;
  }

  private static ByteBuffer bytesOf(FileChannel file, long position, int count) throws IOException {
    ByteBuffer bytes = ByteBuffer.allocate(count);
    while (bytes.hasRemaining()) {
      if (file.read(bytes, position + bytes.position()) < 0) {
        throw new EOFException("file ends at " + (position + bytes.position()));
      }
    }
    return bytes.flip();
  }

  /** Begins a record unless one is to be ended. */
  private void begin(int bytes) {
    if (left == 0) {
      left = bytes;
      byUcx = bytes >= smallBytes;
      head.clear().putInt(byUcx ? bytes | Records.BY_UCX : bytes).flip();
    }
  }

  private int small(ByteBuffer from) throws IOException {
    int start = from.position();
    headAndBytes[1] = from;
    try {
      tcp.write(headAndBytes);
    } finally {
      headAndBytes[1] = null;
      left -= from.position() - start;
    }
    return from.position() - start;
  }

  private boolean flushed() throws IOException {
    if (head.hasRemaining()) {
      tcp.write(headAlone);
    }
    return !head.hasRemaining();
  }
}

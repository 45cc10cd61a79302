package io.trunkline.hadoop.ucx;

import java.io.IOException;
import java.nio.ByteBuffer;

/**
 * Reads {@link Records}, ahead as far as they have come, so that a small message costs one call of
 * the system. One reader at a time; nothing waits.
 *
 * <pre>
 *   HEAD --small--> BYTES BY TCP --all read--> HEAD
 *      '---by UCX---> BYTES BY UCX --all read--> HEAD
 * </pre>
 */
final class RecordsIn {
  static final int AHEAD_BYTES = 64 << 10;

  private final Records.Mover tcp;
  private final Records.Mover ucx;
  private final ByteBuffer ahead = ByteBuffer.allocateDirect(AHEAD_BYTES).limit(0);

  /** What is left of the record; 0 where a head comes next. */
  private int left;

  private boolean byUcx;

  /**
   * A reader.
   *
   * @param tcp reads what has come by TCP, -1 at the end
   * @param ucx reads what has come by UCX, -1 at the end
   */
  RecordsIn(Records.Mover tcp, Records.Mover ucx) {
    this.tcp = tcp;
    this.ucx = ucx;
  }

  /** Whether what comes next comes by UCX. */
  boolean waitsForUcx() {
    return left > 0 && byUcx;
  }

  /** Whether there is something to read, or to find out, without the network. */
  boolean pending() {
    return left == 0 ? ahead.remaining() >= Records.HEAD_BYTES : !byUcx && ahead.hasRemaining();
  }

  /**
   * Reads what is here.
   *
   * @return bytes, 0 when none are here, -1 at the end
   * @throws IOException when the peer breaks the rules, or ends within a record
   */
  int read(ByteBuffer to) throws IOException {
    int taken = 0;
    while (to.hasRemaining()) {
      boolean mayFill = taken == 0;
      if (left == 0) {
        int headed = head(mayFill);
        if (headed < 0) {
          return -1;
        }
        if (headed == 0) {
          break;
        }
      }
      if (byUcx && !mayFill) {
        break;
      }
      int count = byUcx ? Records.moveAtMost(left, to, ucx) : fromAhead(to, mayFill);
      if (count < 0) {
        throw new IOException(
            "Connection reset: ended within a record, " + left + " bytes missing");
      }
      if (count == 0) {
        break;
      }
      left -= count;
      taken += count;
    }
    return taken;
  }

  /** Reads a head; returns 1, or 0 when it is not here yet, or -1 at the end. */
  private int head(boolean mayFill) throws IOException {
    while (ahead.remaining() < Records.HEAD_BYTES) {
      int count = mayFill ? fill() : 0;
      if (count < 0 && ahead.hasRemaining()) {
        throw new IOException("Connection reset: ended within a record's head");
      }
      if (count <= 0) {
        return count;
      }
    }
    int head = ahead.getInt();
    int length = head & ~Records.BY_UCX;
    boolean large = head < 0;
    if (length == 0 || !large && length > Records.MAX_SMALL_BYTES) {
      throw new IOException("Connection reset: record " + Integer.toHexString(head));
    }
    byUcx = large;
    left = length;
    return 1;
  }

  private int fromAhead(ByteBuffer to, boolean mayFill) throws IOException {
    if (!ahead.hasRemaining()) {
      int count = mayFill ? fill() : 0;
      if (count <= 0) {
        return count;
      }
    }
    int count = Math.min(left, Math.min(to.remaining(), ahead.remaining()));
    to.put(to.position(), ahead, ahead.position(), count).position(to.position() + count);
    ahead.position(ahead.position() + count);
    return count;
  }

  private int fill() throws IOException {
    ahead.compact();
    try {
      return tcp.move(ahead);
    } finally {
      ahead.flip();
    }
  }
}

package io.trunkline.hadoop.ndn.secure;

import io.trunkline.hadoop.ndn.wire.SecureHello;
import io.trunkline.hadoop.tap.TapWire;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;

/**
 * The records of a secure session between a tap and its connection. What the tap writes counts as
 * sent when the records that carry it have gone out whole.
 */
public final class SealedWire implements TapWire {
  /** So many records go out in one call at most. */
  private static final int RECORDS = 4;

  private final SecureSession session;
  private final RecordReader reader;

  /** Records that are on their way out, between position and limit. */
  private final ByteBuffer sealed =
      ByteBuffer.allocate(RECORDS * (SecureSession.LENGTH_BYTES + SecureHello.MAX_RECORD_BYTES))
          .limit(0);

  /** How many bytes they carry, which are still the first ones that the caller has. */
  private int carried;

  private volatile boolean pending;

  /**
   * Carries a tap's connection.
   *
   * @param session its handshake is over; closed with this
   */
  public SealedWire(SecureSession session) {
    this.session = session;
    this.reader = new RecordReader(session);
  }

  @Override
  public int write(ByteBuffer from, SocketChannel to) throws IOException {
    int start = from.position();
    while (true) {
      if (sealed.hasRemaining()) {
        to.write(sealed);
        if (sealed.hasRemaining()) {
          break;
        }
      }
      from.position(from.position() + carried);
      carried = 0;
      if (!from.hasRemaining()) {
        break;
      }
      seal(from.duplicate());
    }
    return from.position() - start;
  }

  private void seal(ByteBuffer from) throws IOException {
    sealed.clear();
    try {
      for (int i = 0; i < RECORDS && from.hasRemaining(); i++) {
        int length = Math.min(from.remaining(), SecureHello.MAX_PLAIN_BYTES);
        byte[] plain;
        int off;
        if (from.hasArray()) {
          plain = from.array();
          off = from.arrayOffset() + from.position();
        } else {
          plain = new byte[length];
          off = 0;
          from.get(from.position(), plain);
        }
        session.seal(plain, off, length, sealed);
        from.position(from.position() + length);
        carried += length;
      }
    } finally {
      sealed.flip();
    }
  }

  @Override
  public int read(SocketChannel from, ByteBuffer to) throws IOException {
    while (!reader.ready()) {
      int count;
      try {
        count = from.read(reader.room());
      } finally {
        reader.came();
      }
      if (count <= 0) {
        pending = false;
        return count;
      }
    }
    int count = reader.take(to);
    pending = reader.pending();
    return count;
  }

  @Override
  public boolean pending() {
    return pending;
  }

  @Override
  public void close() {
    session.close();
  }
}

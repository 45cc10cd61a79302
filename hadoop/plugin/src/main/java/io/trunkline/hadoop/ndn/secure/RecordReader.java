package io.trunkline.hadoop.ndn.secure;

import io.trunkline.hadoop.ndn.wire.SecureHello;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * Opens the records of a secure connection, wherever the reads that bring them were cut. One thread
 * at a time.
 */
public final class RecordReader {
  /** Room for the longest record, and for many of the usual ones. */
  private static final int RAW_BYTES =
      SecureSession.LENGTH_BYTES + SecureHello.MAX_RECORD_BYTES + 2048;

  private final SecureSession session;

  /** What has come and was not opened lies between position and limit. */
  private final ByteBuffer raw = ByteBuffer.allocate(RAW_BYTES).limit(0);

  /** What the last record carries, and how much of it was taken. */
  private final byte[] plain = new byte[SecureHello.MAX_PLAIN_BYTES];

  private int at;
  private int end;

  /**
   * A reader.
   *
   * @param session opens the records
   */
  public RecordReader(SecureSession session) {
    this.session = session;
  }

  /**
   * Where bytes of the connection go; call {@link #came} when some have been put there.
   *
   * @return a buffer with room as long as {@link #ready} is false
   */
  public ByteBuffer room() {
    return raw.compact();
  }

  /** Bytes have been put into {@link #room}, or none. */
  public void came() {
    raw.flip();
  }

  /**
   * Whether there is something to take; opens the next record if need be.
   *
   * @return false when more bytes are needed
   * @throws IOException when what has come is no record that the other end sealed
   */
  public boolean ready() throws IOException {
    while (at == end && whole()) {
      int length = raw.getShort() & 0xFFFF;
      if (length < SecureHello.SEAL_BYTES || length > SecureHello.MAX_RECORD_BYTES) {
        throw new IOException("secure control connection: record of " + length + " bytes");
      }
      end = 0;
      at = 0;
      end = session.unseal(raw.array(), raw.arrayOffset() + raw.position(), length, plain);
      raw.position(raw.position() + length);
    }
    return at < end;
  }

  /** Whether a record has come whole, or something that will never be one. */
  private boolean whole() {
    if (raw.remaining() < SecureSession.LENGTH_BYTES) {
      return false;
    }
    int length = raw.getShort(raw.position()) & 0xFFFF;
    return length > SecureHello.MAX_RECORD_BYTES
        || raw.remaining() - SecureSession.LENGTH_BYTES >= length;
  }

  /**
   * Whether {@link #ready} has something to do without another byte.
   *
   * @return true when it has
   */
  public boolean pending() {
    return at < end || whole();
  }

  /**
   * Takes bytes, of one record.
   *
   * @param to where they go
   * @param off where in it
   * @param length how many at most
   * @return how many, 0 when {@link #ready} is false
   */
  public int take(byte[] to, int off, int length) {
    int count = Math.min(length, end - at);
    System.arraycopy(plain, at, to, off, count);
    return taken(count);
  }

  /**
   * Takes bytes, of one record.
   *
   * @param to where they go
   * @return how many, 0 when {@link #ready} is false
   */
  public int take(ByteBuffer to) {
    int count = Math.min(to.remaining(), end - at);
    to.put(plain, at, count);
    return taken(count);
  }

  /** A token or a key may have been among it. */
  private int taken(int count) {
    Arrays.fill(plain, at, at + count, (byte) 0);
    at += count;
    return count;
  }
}

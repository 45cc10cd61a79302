package io.trunkline.hadoop.wire;

import java.io.IOException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * The beginning of a stock HDFS packet: payload length (4), header length (2), header. The body
 * that follows it is checksums, then data.
 *
 * <p>The header is the message PacketHeaderProto of datatransfer.proto. One is read for each
 * packet, so it is read by hand; in a short command the message's own classes would take longer to
 * be compiled than to run.
 */
public final class PacketHead {
  /** Bytes of the two lengths. */
  public static final int LENGTHS_BYTES = 6;

  /** Longest head accepted; stock ones are below 40 bytes. */
  public static final int MAX_BYTES = 512;

  /** Longest packet body accepted, as in stock HDFS. */
  public static final int MAX_BODY_BYTES = 16 << 20;

  // Tags of the message's fields: number times 8, plus the way it is encoded.
  private static final int TAG_OFFSET = 1 << 3 | 1;
  private static final int TAG_SEQNO = 2 << 3 | 1;
  private static final int TAG_LAST = 3 << 3;
  private static final int TAG_DATA_LENGTH = 4 << 3 | 5;

  /** Bits for the four fields that every header has. */
  private static final int ALL_REQUIRED = 15;

  private final byte[] bytes;
  private final int bodyLength;
  private long offset;
  private long seqno;
  private int dataLength;
  private boolean last;

  private PacketHead(byte[] bytes, int bodyLength) {
    this.bytes = bytes;
    this.bodyLength = bodyLength;
  }

  /**
   * Length of a head whose two lengths are known.
   *
   * @param lengths the first {@link #LENGTHS_BYTES} bytes
   * @return length of the whole head in bytes
   * @throws IOException when a length is out of bounds
   */
  static int length(byte[] lengths) throws IOException {
    ByteBuffer in = ByteBuffer.wrap(lengths);
    int payload = in.getInt();
    int header = in.getShort();
    if (payload < 4 || payload - 4 > MAX_BODY_BYTES) {
      throw new IOException("packet with a payload length of " + payload);
    }
    if (header < 0 || LENGTHS_BYTES + header > MAX_BYTES) {
      throw new IOException("packet with a header length of " + header);
    }
    return LENGTHS_BYTES + header;
  }

  /**
   * Parses a whole head.
   *
   * @param bytes the head, all of it and nothing else; kept, not copied
   * @return the head
   * @throws IOException when it is malformed
   */
  public static PacketHead parse(byte[] bytes) throws IOException {
    if (bytes.length < LENGTHS_BYTES || length(bytes) != bytes.length) {
      throw new IOException("packet head of " + bytes.length + " bytes does not fit its lengths");
    }
    ByteBuffer in = ByteBuffer.wrap(bytes);
    PacketHead head = new PacketHead(bytes, in.getInt() - 4);
    in.position(LENGTHS_BYTES);
    try {
      head.readHeader(in.order(ByteOrder.LITTLE_ENDIAN));
    } catch (BufferUnderflowException | IllegalArgumentException e) {
      throw new IOException("packet header is cut off", e);
    }
    if (head.dataLength < 0 || head.dataLength > head.bodyLength || head.offset < 0) {
      throw new IOException("packet out of bounds: " + head);
    }
    return head;
  }

  private void readHeader(ByteBuffer in) throws IOException {
    int seen = 0;
    while (in.hasRemaining()) {
      int tag = (int) variable(in);
      switch (tag) {
        case TAG_OFFSET -> {
          offset = in.getLong();
          seen |= 1;
        }
        case TAG_SEQNO -> {
          seqno = in.getLong();
          seen |= 2;
        }
        case TAG_LAST -> {
          last = variable(in) != 0;
          seen |= 4;
        }
        case TAG_DATA_LENGTH -> {
          dataLength = in.getInt();
          seen |= 8;
        }
        default -> skip(in, tag & 7);
      }
    }
    if (seen != ALL_REQUIRED) {
      throw new IOException("packet header lacks a field");
    }
  }

  /** Skips a field that does not matter here, such as whether to sync. */
  private static void skip(ByteBuffer in, int encoding) throws IOException {
    switch (encoding) {
      case 0 -> variable(in);
      case 1 -> in.position(in.position() + 8);
      case 2 -> {
        long length = variable(in);
        if (length < 0 || length > in.remaining()) {
          throw new IOException("packet header with a field of " + length + " bytes");
        }
        in.position(in.position() + (int) length);
      }
      case 5 -> in.position(in.position() + 4);
      default -> throw new IOException("packet header with an unknown encoding");
    }
  }

  private static long variable(ByteBuffer in) throws IOException {
    long value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      byte next = in.get();
      value |= (long) (next & 0x7F) << shift;
      if (next >= 0) {
        return value;
      }
    }
    throw new IOException("packet header with a number without end");
  }

  /**
   * The head as it stood on the wire.
   *
   * @return its bytes, not a copy
   */
  public byte[] bytes() {
    return bytes;
  }

  /**
   * Length of checksums and data.
   *
   * @return bytes
   */
  public int bodyLength() {
    return bodyLength;
  }

  /**
   * Length of the data.
   *
   * @return bytes
   */
  public int dataLength() {
    return dataLength;
  }

  /**
   * Where in the block the data begins.
   *
   * @return bytes
   */
  public long offset() {
    return offset;
  }

  /**
   * Its sequence number, by which it is acknowledged.
   *
   * @return from 0 within a block; -1 for a heartbeat
   */
  public long seqno() {
    return seqno;
  }

  /**
   * Whether this is the empty packet that ends a block.
   *
   * @return true for it
   */
  public boolean last() {
    return last;
  }

  /**
   * Whether two heads are the same bytes.
   *
   * @param other another head
   * @return true when they are
   */
  public boolean same(PacketHead other) {
    return Arrays.equals(bytes, other.bytes);
  }

  @Override
  public String toString() {
    return dataLength
        + " data bytes at "
        + offset
        + " in a body of "
        + bodyLength
        + (last ? ", the last" : "");
  }
}

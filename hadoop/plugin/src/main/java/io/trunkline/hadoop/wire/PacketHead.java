package io.trunkline.hadoop.wire;

import io.trunkline.hadoop.util.BigEndian;
import java.io.IOException;
import java.util.Arrays;

/**
 * The beginning of a stock HDFS packet: payload length (4), header length (2), header. The body
 * that follows it is checksums, then data.
 *
 * <p>The header is the message PacketHeaderProto of datatransfer.proto.
 */
public final class PacketHead {
  /** Bytes of the two lengths. */
  public static final int LENGTHS_BYTES = 6;

  /** Longest head accepted; stock ones are below 40 bytes. */
  public static final int MAX_BYTES = 512;

  /** Longest packet body accepted, as in stock HDFS. */
  public static final int MAX_BODY_BYTES = 16 << 20;

  private static final int PAYLOAD_AT = 0;
  private static final int HEADER_LENGTH_AT = 4;

  private static final int OFFSET = 1 << 3 | Fields.FIXED_64;
  private static final int SEQNO = 2 << 3 | Fields.FIXED_64;
  private static final int LAST = 3 << 3 | Fields.VARIABLE;
  private static final int DATA_LENGTH = 4 << 3 | Fields.FIXED_32;

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
    int payload = BigEndian.getInt(lengths, PAYLOAD_AT);
    int header = (short) BigEndian.getShort(lengths, HEADER_LENGTH_AT);
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
    PacketHead head = new PacketHead(bytes, BigEndian.getInt(bytes, PAYLOAD_AT) - 4);
    head.readHeader(new Fields(bytes, LENGTHS_BYTES, bytes.length));
    if (head.dataLength < 0 || head.dataLength > head.bodyLength || head.offset < 0) {
      throw new IOException("packet out of bounds: " + head);
    }
    return head;
  }

  private void readHeader(Fields in) throws IOException {
    int seen = 0;
    while (in.more()) {
      int tag = (int) in.variable();
      switch (tag) {
        case OFFSET -> {
          offset = in.fixed(Long.BYTES);
          seen |= 1;
        }
        case SEQNO -> {
          seqno = in.fixed(Long.BYTES);
          seen |= 2;
        }
        case LAST -> {
          last = in.variable() != 0;
          seen |= 4;
        }
        case DATA_LENGTH -> {
          dataLength = (int) in.fixed(Integer.BYTES);
          seen |= 8;
        }
        default -> in.skip(tag); // such as whether to sync
      }
    }
    if (seen != ALL_REQUIRED) {
      throw new IOException("packet header lacks a field");
    }
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

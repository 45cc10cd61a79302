package io.trunkline.hadoop.ndn.wire;

import io.trunkline.hadoop.wire.PacketHead;
import java.io.IOException;
import java.nio.ByteBuffer;

/**
 * What goes down the control connection of a named write in place of one stock packet:
 *
 * <pre>
 *   kind (1) | head length (2) | number (4, kinds 1 and 2 only) | head | body (kind 0 only)
 * </pre>
 *
 * The head is the stock packet's own beginning: payload length, header length, header. A kind that
 * is not 0 says that the body was published in the segments from that number on, as {@link
 * SegmentCut} cuts it.
 *
 * @param kind one of {@link #INLINE}, {@link #BLOCK_SEGMENT}, {@link #STREAM_SEGMENT}
 * @param number of the first segment that carries the body; 0 for inline ones
 * @param head the stock packet's lengths and header
 */
public record ControlRecord(byte kind, long number, PacketHead head) {
  /** The body, if any, follows on the connection. */
  public static final byte INLINE = 0;

  /** The body is one or more segments of the block itself. */
  public static final byte BLOCK_SEGMENT = 1;

  /** The body is one or more segments of this writer's stream. */
  public static final byte STREAM_SEGMENT = 2;

  /** Longest record in bytes, the body of an inline one aside. */
  public static final int MAX_BYTES = 7 + PacketHead.MAX_BYTES;

  /**
   * Writes the record; the body of an inline one is the caller's to write.
   *
   * @param out with {@link #MAX_BYTES} of room
   */
  public void encode(ByteBuffer out) {
    out.put(kind).putShort((short) head.bytes().length);
    if (kind != INLINE) {
      out.putInt((int) number);
    }
    out.put(head.bytes());
  }

  /**
   * Reads a record.
   *
   * @param in the bytes that have come; its position moves past the record when it is whole
   * @return the record, or null when more bytes are needed
   * @throws IOException when the bytes are no record
   */
  public static ControlRecord decode(ByteBuffer in) throws IOException {
    ByteBuffer view = in.duplicate();
    if (view.remaining() < 3) {
      if (view.hasRemaining()) {
        checkKind(view.get());
      }
      return null;
    }
    byte kind = checkKind(view.get());
    int length = view.getShort() & 0xFFFF;
    if (length < PacketHead.LENGTHS_BYTES || length > PacketHead.MAX_BYTES) {
      throw new IOException("control record with a packet head of " + length + " bytes");
    }
    int numberBytes = kind == INLINE ? 0 : 4;
    if (view.remaining() < numberBytes + length) {
      return null;
    }
    long number = kind == INLINE ? 0 : view.getInt() & 0xFFFFFFFFL;
    byte[] bytes = new byte[length];
    view.get(bytes);
    PacketHead head = PacketHead.parse(bytes);
    if (kind != INLINE && head.bodyLength() == 0) {
      throw new IOException("control record names a segment for a packet without a body");
    }
    in.position(view.position());
    return new ControlRecord(kind, number, head);
  }

  private static byte checkKind(byte kind) throws IOException {
    if (kind < INLINE || kind > STREAM_SEGMENT) {
      throw new IOException("control record of unknown kind " + kind);
    }
    return kind;
  }
}

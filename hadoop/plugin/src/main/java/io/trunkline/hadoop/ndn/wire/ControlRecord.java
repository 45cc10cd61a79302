package io.trunkline.hadoop.ndn.wire;

import io.trunkline.hadoop.util.BigEndian;
import io.trunkline.hadoop.wire.PacketHead;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * What goes down the control connection of a named write in place of one stock packet:
 *
 * <pre>
 *   kind (1) | head length (2) | number (4) | segments (1) | head | digests (16 each)   by name
 *   kind (1) | head length (2) | head | body                                            inline, again
 * </pre>
 *
 * The head is the stock packet's own beginning: payload length, header length, header. A record by
 * name says that the body was published in the segments from that number on, as {@link SegmentCut}
 * cuts it, and how each is told from whatever else its name may stand for: by the first 16 bytes of
 * the SHA-256 of its header and checksums. A body that is sent again belongs to a packet whose
 * record by name went before; it was asked for with an {@link AnswerFrame}.
 *
 * @param kind one of {@link #INLINE}, {@link #BLOCK_SEGMENT}, {@link #STREAM_SEGMENT}, {@link
 *     #AGAIN}
 * @param number of the first segment that carries the body; 0 where none does
 * @param head the stock packet's lengths and header
 * @param digests those of the segments, one after the other; empty where there are none
 */
public record ControlRecord(byte kind, long number, PacketHead head, byte[] digests) {
  /** The body, if any, follows on the connection. */
  public static final byte INLINE = 0;

  /** The body is one or more segments of the block itself. */
  public static final byte BLOCK_SEGMENT = 1;

  /** The body is one or more segments of this writer's stream. */
  public static final byte STREAM_SEGMENT = 2;

  /** The body of a packet that was announced by name follows on the connection. */
  public static final byte AGAIN = 3;

  /** Most segments that one record may name. */
  public static final int MAX_SEGMENTS = 255;

  /** Length of the digest of one segment. */
  public static final int DIGEST_BYTES = 16;

  /** Longest record in bytes, the body of an inline one aside. */
  public static final int MAX_BYTES = 8 + PacketHead.MAX_BYTES + MAX_SEGMENTS * DIGEST_BYTES;

  private static final int HEAD_LENGTH_AT = 1;
  private static final int NUMBER_AT = 3;
  private static final int SEGMENTS_AT = 7;

  /** What stands before the packet's head, in a record by name and in others. */
  private static final int NAMED_BYTES = 8;

  private static final int PLAIN_BYTES = 3;

  private static final byte[] NONE = new byte[0];

  /**
   * A record whose body goes along.
   *
   * @param head the packet's lengths and header
   * @return the record
   */
  public static ControlRecord inline(PacketHead head) {
    return new ControlRecord(INLINE, 0, head, NONE);
  }

  /**
   * A record whose body goes along, after a record by name.
   *
   * @param head the packet's lengths and header
   * @return the record
   */
  public static ControlRecord again(PacketHead head) {
    return new ControlRecord(AGAIN, 0, head, NONE);
  }

  /**
   * Whether the body is to be had by name.
   *
   * @return false when it follows on the connection, or there is none
   */
  public boolean byName() {
    return kind == BLOCK_SEGMENT || kind == STREAM_SEGMENT;
  }

  /**
   * Writes the record; a body that goes along is the caller's to write.
   *
   * @param out with {@link #MAX_BYTES} of room
   */
  public void encode(ByteBuffer out) {
    byte[] first = new byte[byName() ? NAMED_BYTES : PLAIN_BYTES];
    first[0] = kind;
    BigEndian.putShort(first, HEAD_LENGTH_AT, head.bytes().length);
    if (byName()) {
      BigEndian.putInt(first, NUMBER_AT, (int) number);
      first[SEGMENTS_AT] = (byte) (digests.length / DIGEST_BYTES);
    }
    out.put(first).put(head.bytes()).put(digests);
  }

  /**
   * Reads a record.
   *
   * @param in the bytes that have come, in an array; its position moves past the record when it is
   *     whole
   * @return the record, or null when more bytes are needed
   * @throws IOException when the bytes are no record
   */
  public static ControlRecord decode(ByteBuffer in) throws IOException {
    byte[] from = in.array();
    int start = in.arrayOffset() + in.position();
    int have = in.remaining();
    byte kind = have == 0 ? INLINE : checkKind(from[start]);
    if (have < PLAIN_BYTES) {
      return null;
    }
    int length = BigEndian.getShort(from, start + HEAD_LENGTH_AT);
    if (length < PacketHead.LENGTHS_BYTES || length > PacketHead.MAX_BYTES) {
      throw new IOException("control record with a packet head of " + length + " bytes");
    }
    boolean named = kind == BLOCK_SEGMENT || kind == STREAM_SEGMENT;
    int headAt = named ? NAMED_BYTES : PLAIN_BYTES;
    if (have < headAt) {
      return null;
    }
    long number = named ? BigEndian.getInt(from, start + NUMBER_AT) & 0xFFFFFFFFL : 0;
    int segments = named ? from[start + SEGMENTS_AT] & 0xFF : 0;
    int digestsAt = headAt + length;
    int end = digestsAt + segments * DIGEST_BYTES;
    if (have < end) {
      return null;
    }
    PacketHead head = PacketHead.parse(Arrays.copyOfRange(from, start + headAt, start + digestsAt));
    byte[] digests =
        segments == 0 ? NONE : Arrays.copyOfRange(from, start + digestsAt, start + end);
    if (named && (head.bodyLength() == 0 || segments == 0)) {
      throw new IOException(
          "control record names " + segments + " segments for " + head.bodyLength() + " bytes");
    }
    in.position(in.position() + end);
    return new ControlRecord(kind, number, head, digests);
  }

  private static byte checkKind(byte kind) throws IOException {
    if (kind < INLINE || kind > AGAIN) {
      throw new IOException("control record of unknown kind " + kind);
    }
    return kind;
  }
}

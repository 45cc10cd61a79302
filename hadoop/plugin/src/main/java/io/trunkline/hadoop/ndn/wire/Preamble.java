package io.trunkline.hadoop.ndn.wire;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

/**
 * First bytes on every connection to the plug-in's listener, before anything stock:
 *
 * <pre>
 *   magic "TRKL" (4) | version 2 (1) | mode 0 plain, 1 named (1) | name length (2)
 *   | URI of the block's versioned name | stream nonce (8) | data bytes a segment (4)
 * </pre>
 *
 * Numbers are big-endian. In plain mode the name is empty, nonce and segment bytes are zero, and
 * everything after is a stock connection. In named mode the stock op header follows, then {@link
 * ControlRecord}s, and {@link AnswerFrame}s come back.
 *
 * @param name URI of the block's versioned name, empty in plain mode
 * @param nonce tells apart the streams of two writers of one block
 * @param segmentBytes data bytes a segment
 */
public record Preamble(String name, long nonce, int segmentBytes) {
  /** "TRKL". */
  static final int MAGIC = 0x54524B4C;

  /**
   * Of this layout, of {@link ControlRecord} and of {@link AnswerFrame}: who speaks another one is
   * not understood. A DataNode's record says which one it speaks.
   */
  public static final byte VERSION = 2;

  /** Bytes before the name. */
  static final int FIXED_BYTES = 8;

  /** Bytes after the name. */
  static final int TAIL_BYTES = 12;

  /** Longest name accepted, in bytes. */
  public static final int MAX_NAME_BYTES = 1024;

  private static final Preamble PLAIN = new Preamble("", 0, 0);

  /**
   * The preamble of a connection that carries stock bytes.
   *
   * @return it
   */
  public static Preamble plain() {
    return PLAIN;
  }

  /**
   * Whether packet bodies go by name.
   *
   * @return false in plain mode
   */
  public boolean named() {
    return !name.isEmpty();
  }

  /**
   * Writes the preamble.
   *
   * @return its bytes
   */
  public byte[] encode() {
    byte[] uri = name.getBytes(StandardCharsets.US_ASCII);
    return ByteBuffer.allocate(FIXED_BYTES + uri.length + TAIL_BYTES)
        .putInt(MAGIC)
        .put(VERSION)
        .put((byte) (named() ? 1 : 0))
        .putShort((short) uri.length)
        .put(uri)
        .putLong(nonce)
        .putInt(segmentBytes)
        .array();
  }

  /**
   * Reads a preamble.
   *
   * @param in the bytes that have come; its position moves past the preamble when it is whole
   * @return the preamble, or null when more bytes are needed
   * @throws IOException when the bytes are no preamble
   */
  public static Preamble decode(ByteBuffer in) throws IOException {
    ByteBuffer view = in.duplicate();
    if (view.remaining() < FIXED_BYTES) {
      refuseEarly(view);
      return null;
    }
    int magic = view.getInt();
    if (magic != MAGIC) {
      throw new IOException(
          "connection begins with 0x"
              + HexFormat.of().toHexDigits(magic)
              + ", not with a Trunkline preamble");
    }
    byte version = view.get();
    byte mode = view.get();
    int length = view.getShort() & 0xFFFF;
    if (version != VERSION) {
      throw new IOException("preamble of version " + version + ", this side knows " + VERSION);
    }
    if (mode != 0 && mode != 1) {
      throw new IOException("preamble with unknown mode " + mode);
    }
    if (length > MAX_NAME_BYTES || (mode == 0) != (length == 0)) {
      throw new IOException("preamble of mode " + mode + " with a name of " + length + " bytes");
    }
    if (view.remaining() < length + TAIL_BYTES) {
      return null;
    }
    byte[] uri = new byte[length];
    view.get(uri);
    long nonce = view.getLong();
    int segmentBytes = view.getInt();
    if (mode == 1 && (segmentBytes < 1 || segmentBytes > SegmentHeader.MAX_BODY_BYTES)) {
      throw new IOException("preamble with segments of " + segmentBytes + " bytes");
    }
    in.position(view.position());
    return mode == 0
        ? PLAIN
        : new Preamble(new String(uri, StandardCharsets.US_ASCII), nonce, segmentBytes);
  }

  private static void refuseEarly(ByteBuffer view) throws IOException {
    for (int shift = 24; shift >= 0 && view.hasRemaining(); shift -= 8) {
      byte next = view.get();
      if (next != (byte) (MAGIC >>> shift)) {
        throw new IOException("connection does not begin with a Trunkline preamble");
      }
    }
  }
}

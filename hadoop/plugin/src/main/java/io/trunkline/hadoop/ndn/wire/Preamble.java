package io.trunkline.hadoop.ndn.wire;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;

/**
 * First bytes on every connection to the plug-in's listener, before anything stock; where the write
 * carries a block token, the first that go through the secure channel:
 *
 * <pre>
 *   magic "TRKL" (4) | version (1) | flags (1) | name length (2)
 *   | URI of the block's versioned name | stream nonce (8) | data bytes a segment (4)
 *   | key (16), with flag 1
 * </pre>
 *
 * Numbers are big-endian. The stock op header of a write follows, then {@link ControlRecord}s, and
 * {@link AnswerFrame}s come back. What is no write by name goes to the stock port.
 *
 * @param name URI of the block's versioned name
 * @param nonce tells apart the streams of two writers of one block
 * @param segmentBytes data bytes a segment
 * @param key what segments are sealed with, null when they are not
 */
public record Preamble(String name, long nonce, int segmentBytes, WriteKey key) {
  /** "TRKL". */
  static final int MAGIC = 0x54524B4C;

  /**
   * Of this layout, of {@link ControlRecord} and of {@link AnswerFrame}: who speaks another one is
   * not understood. A DataNode's record says which one it speaks.
   */
  public static final byte VERSION = 7;

  /** A key follows. */
  private static final byte SEALED = 1;

  /** Bytes before the name. */
  static final int FIXED_BYTES = 8;

  /** Bytes after the name, without a key. */
  static final int TAIL_BYTES = 12;

  /** Longest name accepted, in bytes. */
  public static final int MAX_NAME_BYTES = 1024;

  /**
   * The preamble of a write whose segments are not sealed.
   *
   * @param name URI of the block's versioned name
   * @param nonce tells apart the streams of two writers of one block
   * @param segmentBytes data bytes a segment
   */
  public Preamble(String name, long nonce, int segmentBytes) {
    this(name, nonce, segmentBytes, null);
  }

  /**
   * Writes the preamble.
   *
   * @return its bytes
   */
  public byte[] encode() {
    byte[] uri = name.getBytes(StandardCharsets.US_ASCII);
    byte[] keyBytes = key == null ? new byte[0] : key.bytes();
    return ByteBuffer.allocate(FIXED_BYTES + uri.length + TAIL_BYTES + keyBytes.length)
        .putInt(MAGIC)
        .put(VERSION)
        .put(key == null ? 0 : SEALED)
        .putShort((short) uri.length)
        .put(uri)
        .putLong(nonce)
        .putInt(segmentBytes)
        .put(keyBytes)
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
    byte flags = view.get();
    int length = view.getShort() & 0xFFFF;
    if (version != VERSION) {
      throw new IOException("preamble of version " + version + ", this side knows " + VERSION);
    }
    if ((flags & ~SEALED) != 0 || length == 0 || length > MAX_NAME_BYTES) {
      throw new IOException("preamble with a name of " + length + " bytes and flags " + flags);
    }
    int keyBytes = flags == SEALED ? WriteKey.BYTES : 0;
    if (view.remaining() < length + TAIL_BYTES + keyBytes) {
      return null;
    }
    byte[] uri = new byte[length];
    view.get(uri);
    for (byte next : uri) {
      // A URI has none of these; a line end would forge lines of the log.
      if (next <= ' ' || next == 0x7F) {
        throw new IOException("preamble with a name that is no URI");
      }
    }
    long nonce = view.getLong();
    int segmentBytes = view.getInt();
    if (segmentBytes < SegmentHeader.MIN_DATA_BYTES
        || segmentBytes > SegmentHeader.MAX_BODY_BYTES) {
      throw new IOException("preamble with segments of " + segmentBytes + " bytes");
    }
    WriteKey key = null;
    if (keyBytes > 0) {
      byte[] bytes = new byte[keyBytes];
      view.get(bytes);
      key = new WriteKey(bytes);
    }
    in.position(view.position());
    return new Preamble(new String(uri, StandardCharsets.US_ASCII), nonce, segmentBytes, key);
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

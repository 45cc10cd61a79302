package io.trunkline.hadoop.ndn.wire;

import io.trunkline.hadoop.wire.BlockToken;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * What a client sends after the {@link Welcome} where the write carries a block token:
 *
 * <pre>
 *   magic "TRKS" (4) | version of the {@link Preamble} (1) | zero (1) | identifier length (2)
 *   | address length (2) | the token's identifier | the {@link DataNodeAddress}
 *   | first message of the handshake (48)
 * </pre>
 *
 * The plug-in answers with the second message (48). The handshake is Noise_NNpsk0 with the token's
 * password as the secret; its prologue is the Welcome and all that stands here before the message.
 * From there on both directions are records: length (2), then so many bytes, at most {@link
 * #MAX_RECORD_BYTES}. They carry the {@link Preamble} and all that follows it.
 *
 * <p>The address is the one that the client wants to reach. All DataNodes of a cluster know the
 * password, so that without it a program in the place of one could have another one answer.
 *
 * @param identifier that of the token
 * @param address the DataNode that is meant
 * @param message first message of the handshake
 */
public record SecureHello(byte[] identifier, String address, byte[] message) {
  /** "TRKS". */
  static final int MAGIC = 0x54524B53;

  /** Length of either message of the handshake. */
  public static final int MESSAGE_BYTES = 48;

  /** Most bytes that a record carries. */
  public static final int MAX_PLAIN_BYTES = 16 * 1024;

  /** What a record is longer than what it carries. */
  public static final int SEAL_BYTES = 16;

  /** Longest record, without its length. */
  public static final int MAX_RECORD_BYTES = MAX_PLAIN_BYTES + SEAL_BYTES;

  private static final int FIXED_BYTES = 10;

  /** Longest hello, in bytes. */
  public static final int MAX_BYTES =
      FIXED_BYTES + BlockToken.MAX_IDENTIFIER_BYTES + DataNodeAddress.MAX_BYTES + MESSAGE_BYTES;

  /** What may be told by the first bytes of a connection. */
  public enum Kind {
    /** Too few have come. */
    UNKNOWN,
    /** Such a hello. */
    SECURE,
    /** Something else, such as a {@link Preamble}. */
    OTHER
  }

  /**
   * Looks at the first bytes of a connection.
   *
   * @param in the bytes that have come; not moved
   * @return what they begin
   */
  public static Kind look(ByteBuffer in) {
    for (int i = 0; i < Integer.BYTES; i++) {
      if (i == in.remaining()) {
        return Kind.UNKNOWN;
      }
      if (in.get(in.position() + i) != (byte) (MAGIC >>> (24 - 8 * i))) {
        return Kind.OTHER;
      }
    }
    return Kind.SECURE;
  }

  /**
   * What both ends have seen before the handshake.
   *
   * @param welcome what the plug-in has said
   * @param identifier that of the token
   * @param address the DataNode that is meant
   * @return the prologue
   */
  public static byte[] prologue(Welcome welcome, byte[] identifier, String address) {
    byte[] head = head(identifier, address);
    return ByteBuffer.allocate(Welcome.BYTES + head.length).put(welcome.encode()).put(head).array();
  }

  private static byte[] head(byte[] identifier, String address) {
    byte[] meant = address.getBytes(StandardCharsets.US_ASCII);
    return ByteBuffer.allocate(FIXED_BYTES + identifier.length + meant.length)
        .putInt(MAGIC)
        .put(Preamble.VERSION)
        .put((byte) 0)
        .putShort((short) identifier.length)
        .putShort((short) meant.length)
        .put(identifier)
        .put(meant)
        .array();
  }

  /**
   * Writes the hello.
   *
   * @return its bytes
   */
  public byte[] encode() {
    byte[] head = head(identifier, address);
    return ByteBuffer.allocate(head.length + message.length).put(head).put(message).array();
  }

  /**
   * Reads a hello.
   *
   * @param in the bytes that have come; its position moves past the hello when it is whole
   * @return the hello, or null when more bytes are needed
   * @throws IOException when the bytes are no hello
   */
  public static SecureHello decode(ByteBuffer in) throws IOException {
    ByteBuffer view = in.duplicate();
    if (view.remaining() < FIXED_BYTES) {
      return null;
    }
    int magic = view.getInt();
    byte version = view.get();
    byte zero = view.get();
    int length = view.getShort() & 0xFFFF;
    int addressLength = view.getShort() & 0xFFFF;
    if (magic != MAGIC || version != Preamble.VERSION || zero != 0) {
      throw new IOException(
          "handshake of version " + version + ", this side knows " + Preamble.VERSION);
    }
    if (length == 0 || length > BlockToken.MAX_IDENTIFIER_BYTES) {
      throw new IOException("handshake with a token identifier of " + length + " bytes");
    }
    if (addressLength == 0 || addressLength > DataNodeAddress.MAX_BYTES) {
      throw new IOException("handshake with an address of " + addressLength + " bytes");
    }
    if (view.remaining() < length + addressLength + MESSAGE_BYTES) {
      return null;
    }
    byte[] identifier = new byte[length];
    byte[] address = new byte[addressLength];
    byte[] message = new byte[MESSAGE_BYTES];
    view.get(identifier).get(address).get(message);
    for (byte b : address) {
      // Others would not come out of the text as they went in, and so not match the prologue.
      if (b < ' ' || b > '~') {
        throw new IOException("handshake with an address that is no text");
      }
    }
    in.position(view.position());
    return new SecureHello(identifier, new String(address, StandardCharsets.US_ASCII), message);
  }
}

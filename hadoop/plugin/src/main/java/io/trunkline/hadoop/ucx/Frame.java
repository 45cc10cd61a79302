package io.trunkline.hadoop.ucx;

import java.nio.ByteBuffer;

/**
 * Header of every active message, 32 bytes, big-endian; payload of {@link #DATA} is the message's
 * data.
 *
 * <pre>
 *   0      1      2        4           8           16              24       28      32
 *   +------+------+--------+-----------+-----------+---------------+--------+-------+
 *   | 0xA1 | type | detail | stream    | token     | sequence      | length | zero  |
 *   +------+------+--------+-----------+-----------+---------------+--------+-------+
 * </pre>
 *
 * The token names the connection at the receiver, who has chosen it at random: nobody else can
 * speak for a peer. HELLO and WELCOME carry {@link Greeting} as data.
 */
record Frame(int type, int detail, int stream, long token, long sequence, int length) {
  static final int BYTES = 32;

  /** First byte: protocol and its version. */
  static final byte MAGIC = (byte) 0xA1;

  /** Connector to acceptor: who I am. The only frame with token 0. */
  static final int HELLO = 1;

  /** Acceptor to connector: the answer to HELLO. */
  static final int WELCOME = 2;

  /** Connector: a new stream. */
  static final int OPEN = 3;

  /** Acceptor: the stream is taken. */
  static final int ACCEPT = 4;

  /** Acceptor: the stream is not taken; detail says why. */
  static final int REFUSE = 5;

  /** Bytes of a stream; sequence counts messages from 0. */
  static final int DATA = 6;

  /** Sequence is the window cost up to which the sender may go. */
  static final int CREDIT = 7;

  /** No more data from here; sequence is that of the message that would come next. */
  static final int FIN = 8;

  /** As FIN, and nothing is read here any more. */
  static final int CLOSE = 9;

  /** The stream is given up. */
  static final int RESET = 10;

  /** The connection is given up, with all of its streams. */
  static final int GOODBYE = 11;

  /** REFUSE: too many streams. */
  static final int TOO_MANY = 1;

  /** REFUSE: backlog of the listener is full. */
  static final int BACKLOG_FULL = 2;

  /** REFUSE: the listener is closed. */
  static final int NOT_LISTENING = 3;

  /** Writes a header at a position. */
  static void put(
      ByteBuffer to, int at, int type, int detail, int stream, long token, long seq, int length) {
    to.put(at, MAGIC);
    to.put(at + 1, (byte) type);
    to.putShort(at + 2, (short) detail);
    to.putInt(at + 4, stream);
    to.putLong(at + 8, token);
    to.putLong(at + 16, seq);
    to.putInt(at + 24, length);
    to.putInt(at + 28, 0);
  }

  /**
   * Reads a header.
   *
   * @param from its bytes, from a peer that may be hostile
   * @return null when this is no header of this protocol
   */
  static Frame read(ByteBuffer from) {
    if (from.remaining() != BYTES || from.get(0) != MAGIC) {
      return null;
    }
    return new Frame(
        from.get(1),
        from.getShort(2),
        from.getInt(4),
        from.getLong(8),
        from.getLong(16),
        from.getInt(24));
  }

  /** What a refusal says to people. */
  static String refusal(int detail) {
    return switch (detail) {
      case TOO_MANY -> "the peer has as many streams as its trunkline.ucx.streams.max allows";
      case BACKLOG_FULL -> "the peer has not accepted its earlier streams yet";
      case NOT_LISTENING -> "the peer has stopped listening";
      default -> "the peer refused, reason " + detail;
    };
  }
}

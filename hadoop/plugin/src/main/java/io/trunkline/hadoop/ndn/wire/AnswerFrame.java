package io.trunkline.hadoop.ndn.wire;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.function.LongConsumer;

/**
 * What comes back on the control connection of a named write, against the direction of the write:
 *
 * <pre>
 *   0 | length (2) | stock bytes: the answer to the op header, and acknowledgements
 *   1 | sequence number (8)
 * </pre>
 *
 * The second asks for the bodies of the packets from that one on, on the connection itself: a
 * DataNode cannot get them by name.
 */
public final class AnswerFrame {
  /** Stock bytes follow. */
  static final byte STOCK = 0;

  /** Bodies are asked for. */
  static final byte ASK = 1;

  /** Bytes before stock bytes. */
  public static final int STOCK_HEAD_BYTES = 3;

  /** Most stock bytes in one frame. */
  public static final int MAX_STOCK_BYTES = 0xFFFF;

  private static final int ASK_BYTES = 9;

  private AnswerFrame() {}

  /**
   * Writes what stands before stock bytes.
   *
   * @param length how many, at most {@link #MAX_STOCK_BYTES}
   * @param out with {@link #STOCK_HEAD_BYTES} of room
   */
  public static void stock(int length, ByteBuffer out) {
    out.put(STOCK).putShort((short) length);
  }

  /**
   * Asks for bodies.
   *
   * @param seqno sequence number of the first packet whose body is wanted
   * @return the frame
   */
  public static byte[] ask(long seqno) {
    return ByteBuffer.allocate(ASK_BYTES).put(ASK).putLong(seqno).array();
  }

  /** Takes frames apart, wherever the reads that bring them were cut. */
  public static final class Reader {
    private final ByteBuffer head = ByteBuffer.allocate(ASK_BYTES).limit(1);
    private int stockLeft;

    /**
     * Takes frames out of a buffer and leaves the stock bytes there, from the first byte on.
     *
     * @param in the buffer; its position and limit are not moved
     * @param from where what has come begins
     * @param to where it ends
     * @param asked told the sequence number of each packet from which on bodies are asked for
     * @return how many stock bytes there are
     * @throws IOException when the bytes are no frames
     */
    public int accept(ByteBuffer in, int from, int to, LongConsumer asked) throws IOException {
      int out = from;
      int at = from;
      while (at < to) {
        if (stockLeft > 0) {
          int part = Math.min(stockLeft, to - at);
          in.put(out, in, at, part);
          out += part;
          at += part;
          stockLeft -= part;
          continue;
        }
        head.put(in.get(at++));
        if (head.position() == 1) {
          head.limit(length(head.get(0)));
        } else if (!head.hasRemaining()) {
          if (head.get(0) == STOCK) {
            stockLeft = head.getShort(1) & 0xFFFF;
          } else {
            asked.accept(head.getLong(1));
          }
          head.clear().limit(1);
        }
      }
      return out - from;
    }

    private static int length(byte kind) throws IOException {
      return switch (kind) {
        case STOCK -> STOCK_HEAD_BYTES;
        case ASK -> ASK_BYTES;
        default -> throw new IOException("answer of unknown kind " + kind);
      };
    }
  }
}

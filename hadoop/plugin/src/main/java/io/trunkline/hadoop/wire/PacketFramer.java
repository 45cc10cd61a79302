package io.trunkline.hadoop.wire;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * Cuts a byte stream into stock HDFS packets, wherever the writes that carry it were cut. A body
 * that lies whole in one array is handed on where it lies; only one that was cut is collected.
 *
 * <pre>
 *   LENGTHS --6 bytes--> HEADER --header length--> BODY --body length--> (packet) --> LENGTHS
 * </pre>
 */
public final class PacketFramer {
  /** Takes the packets. */
  public interface Sink {
    /**
     * One packet.
     *
     * @param head its lengths and header
     * @param body array with its body: checksums, then data; valid during the call only
     * @param off where the body begins
     * @throws IOException when it cannot be taken
     */
    void packet(PacketHead head, byte[] body, int off) throws IOException;
  }

  private static final byte[] EMPTY = new byte[0];

  private final HeadReader heads = new HeadReader();
  private PacketHead head;
  private byte[] collected = EMPTY;
  private int collectedLength;

  /**
   * Takes bytes up to the end of one packet, or all of them when no packet ends in them.
   *
   * @param in the bytes; its position moves past those taken
   * @param sink told when a packet is whole
   * @return true when a packet was handed to the sink
   * @throws IOException when the bytes are no packets, or the sink fails
   */
  public boolean accept(ByteBuffer in, Sink sink) throws IOException {
    if (head == null) {
      head = heads.accept(in);
      if (head == null) {
        return false;
      }
    }
    int length = head.bodyLength();
    if (collectedLength == 0 && in.remaining() >= length && in.hasArray()) {
      int at = in.arrayOffset() + in.position();
      in.position(in.position() + length);
      hand(sink, in.array(), at);
      return true;
    }
    int part = Math.min(length - collectedLength, in.remaining());
    if (collected.length < collectedLength + part) {
      // By what has come: a head alone may announce any length.
      int room = Math.max(collectedLength + part, 2 * collected.length);
      collected = Arrays.copyOf(collected, Math.min(length, room));
    }
    in.get(collected, collectedLength, part);
    collectedLength += part;
    if (collectedLength < length) {
      return false;
    }
    collectedLength = 0;
    hand(sink, collected, 0);
    return true;
  }

  private void hand(Sink sink, byte[] body, int off) throws IOException {
    PacketHead whole = head;
    head = null;
    sink.packet(whole, body, off);
  }
}

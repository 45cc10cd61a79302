package io.trunkline.hadoop.wire;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;

/** Reads the heads of stock HDFS packets, wherever the writes that carry them were cut. */
public final class HeadReader {
  private final byte[] partial = new byte[PacketHead.MAX_BYTES];
  private int have;
  private int need = PacketHead.LENGTHS_BYTES;

  /**
   * Takes bytes up to the end of a head, or all of them when no head ends in them. After a head the
   * caller takes the body.
   *
   * @param in the bytes; its position moves past those taken
   * @return the head, or null when more bytes are needed
   * @throws IOException when the bytes are no head
   */
  public PacketHead accept(ByteBuffer in) throws IOException {
    if (!fill(in)) {
      return null;
    }
    if (need == PacketHead.LENGTHS_BYTES) {
      need = PacketHead.length(partial);
      if (!fill(in)) {
        return null;
      }
    }
    PacketHead head = PacketHead.parse(Arrays.copyOf(partial, need));
    have = 0;
    need = PacketHead.LENGTHS_BYTES;
    return head;
  }

  private boolean fill(ByteBuffer in) {
    int part = Math.min(need - have, in.remaining());
    in.get(partial, have, part);
    have += part;
    return have == need;
  }
}

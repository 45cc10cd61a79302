package io.trunkline.hadoop.wire;

import java.io.IOException;
import java.nio.ByteBuffer;

/**
 * Reads along what comes back on the connection of a write, wherever the reads were cut: the answer
 * to the op, then one acknowledgement a packet (PipelineAckProto of datatransfer.proto), each with
 * its length before it.
 */
public final class AckReader {
  /** No packet has been acknowledged by all. */
  public static final long NONE = -1;

  /** Longest message accepted; one of a pipeline of 10 DataNodes has some 60 bytes. */
  static final int MAX_BYTES = 4096;

  /** A length takes at most so many bits. */
  private static final int MAX_LENGTH_BITS = 21;

  private static final int SEQNO = 1 << 3 | Fields.VARIABLE;
  private static final int REPLY = 2 << 3 | Fields.VARIABLE;
  private static final int REPLIES = 2 << 3 | Fields.BYTES;

  /** The status of a DataNode that has the packet. */
  private static final int SUCCESS = 0;

  private byte[] message = new byte[128];
  private boolean answered;
  private boolean off;
  private int length;
  private int shift;
  private boolean lengthKnown;
  private int have;

  /**
   * Takes bytes that have come.
   *
   * @param in the bytes; its position moves to its limit
   * @return the highest sequence number that these bytes acknowledge in the name of every DataNode
   *     of the pipeline, or {@link #NONE}
   */
  public long accept(ByteBuffer in) {
    long acknowledged = NONE;
    while (in.hasRemaining() && !off) {
      if (!lengthKnown) {
        takeLength(in.get());
        continue;
      }
      int part = Math.min(length - have, in.remaining());
      in.get(message, have, part);
      have += part;
      if (have == length) {
        acknowledged = Math.max(acknowledged, end());
      }
    }
    in.position(in.limit());
    return acknowledged;
  }

  private void takeLength(byte next) {
    length |= (next & 0x7F) << shift;
    shift += 7;
    lengthKnown = next >= 0;
    if (length > MAX_BYTES || shift >= MAX_LENGTH_BITS && !lengthKnown) {
      // Stock code will say what is wrong with it.
      off = true;
    } else if (lengthKnown && message.length < length) {
      message = new byte[length];
    } else if (lengthKnown && length == 0) {
      end();
    }
  }

  private long end() {
    Fields whole = new Fields(message, 0, length);
    length = 0;
    shift = 0;
    have = 0;
    lengthKnown = false;
    if (!answered) {
      answered = true;
      return NONE;
    }
    try {
      return acknowledged(whole);
    } catch (IOException e) {
      off = true;
      return NONE;
    }
  }

  private static long acknowledged(Fields ack) throws IOException {
    boolean numbered = false;
    long seqno = NONE;
    boolean byAll = true;
    while (ack.more()) {
      int tag = (int) ack.variable();
      switch (tag) {
        case SEQNO -> {
          long folded = ack.variable(); // positive and negative numbers by turns
          seqno = folded >>> 1 ^ -(folded & 1);
          numbered = true;
        }
        case REPLY -> byAll &= ack.variable() == SUCCESS;
        case REPLIES -> {
          Fields replies = ack.inner();
          while (replies.more()) {
            byAll &= replies.variable() == SUCCESS;
          }
        }
        default -> ack.skip(tag);
      }
    }
    if (!numbered) {
      throw new IOException("acknowledgement without a sequence number");
    }
    return byAll ? seqno : NONE;
  }
}

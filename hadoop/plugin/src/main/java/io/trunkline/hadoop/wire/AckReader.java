package io.trunkline.hadoop.wire;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.PipelineAckProto;
import org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.Status;

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
    ByteBuffer whole = ByteBuffer.wrap(message, 0, length);
    length = 0;
    shift = 0;
    have = 0;
    lengthKnown = false;
    if (!answered) {
      answered = true;
      return NONE;
    }
    try {
      PipelineAckProto ack = PipelineAckProto.parseFrom(whole);
      for (Status status : ack.getReplyList()) {
        if (status != Status.SUCCESS) {
          return NONE;
        }
      }
      return ack.getSeqno();
    } catch (IOException e) {
      off = true;
      return NONE;
    }
  }
}

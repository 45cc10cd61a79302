package io.trunkline.hadoop.wire;

import java.nio.ByteBuffer;
import org.apache.hadoop.hdfs.protocol.datatransfer.DataTransferProtocol;
import org.apache.hadoop.hdfs.protocol.datatransfer.Op;

/**
 * Tells what a data-transfer connection is for by its first three bytes: version (2) and op (1). A
 * connection that begins with a SASL handshake does not say.
 */
public final class FirstOp {
  private static final int BYTES = 3;

  private int have;
  private int bits;

  /**
   * Takes bytes from the beginning of the connection, in order.
   *
   * @param in the bytes; not moved
   * @return the op, once, when it is known by these bytes; null before, afterwards, and when the
   *     connection begins otherwise
   */
  public Op seen(ByteBuffer in) {
    int at = in.position();
    while (have < BYTES && at < in.limit()) {
      bits = bits << 8 | in.get(at++) & 0xFF;
      have++;
      if (have == BYTES) {
        return bits >> 8 == DataTransferProtocol.DATA_TRANSFER_VERSION ? op((byte) bits) : null;
      }
    }
    return null;
  }

  /**
   * Whether enough has been seen.
   *
   * @return true when {@link #seen} need not be called any more
   */
  public boolean done() {
    return have == BYTES;
  }

  private static Op op(byte code) {
    for (Op op : Op.values()) {
      if (op.code == code) {
        return op;
      }
    }
    return null;
  }
}

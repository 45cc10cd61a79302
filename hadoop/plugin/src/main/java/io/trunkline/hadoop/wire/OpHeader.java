package io.trunkline.hadoop.wire;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.apache.hadoop.hdfs.protocol.datatransfer.DataTransferProtocol;
import org.apache.hadoop.hdfs.protocol.datatransfer.Op;

/**
 * Finds the end of the first op header on a data-transfer connection: version (2), op (1), and a
 * message that its length, a variable-length number, stands before.
 */
public final class OpHeader {
  /** Longest header accepted; with every target and token, stock ones are below 64 KiB. */
  public static final int MAX_BYTES = 1 << 20;

  /**
   * Longest header of a write that goes by name, in bytes; a DataNode keeps it in a small buffer.
   */
  public static final int MAX_NAMED_BYTES = 8192;

  /** What the bytes so far are. */
  public enum Kind {
    /** The beginning of a write's header. */
    INCOMPLETE,
    /** A whole header of a write. */
    WRITE,
    /** Anything else: another op, a SASL handshake, or no header at all. */
    OTHER
  }

  private OpHeader() {}

  /**
   * Looks at the bytes so far.
   *
   * @param in from position to limit: all bytes of the connection so far; not moved
   * @return what they are
   */
  public static Kind look(ByteBuffer in) {
    int at = in.position();
    int have = in.remaining();
    int version = DataTransferProtocol.DATA_TRANSFER_VERSION;
    if (have > 0 && in.get(at) != (byte) (version >>> 8)
        || have > 1 && in.get(at + 1) != (byte) version
        || have > 2 && in.get(at + 2) != Op.WRITE_BLOCK.code) {
      return Kind.OTHER;
    }
    if (have < 4) {
      return Kind.INCOMPLETE;
    }
    long end = end(in);
    if (end > MAX_BYTES || end < 0) {
      return Kind.OTHER;
    }
    return end == 0 || end > have ? Kind.INCOMPLETE : Kind.WRITE;
  }

  /** Length of the header; 0 when its length is not known yet, -1 when it has none. */
  private static long end(ByteBuffer in) {
    long length = 0;
    for (int i = 0; i < 5; i++) {
      int at = 3 + i;
      if (at >= in.remaining()) {
        return 0;
      }
      byte next = in.get(in.position() + at);
      length |= (long) (next & 0x7F) << (7 * i);
      if (next >= 0) {
        return at + 1 + length;
      }
    }
    return -1;
  }

  /**
   * Reads the whole header of a write.
   *
   * @param in begins with it; its position moves past it
   * @return the write
   * @throws IOException when it is malformed
   */
  public static WriteOp parseWrite(ByteBuffer in) throws IOException {
    int length = (int) end(in);
    byte[] bytes = new byte[length];
    in.get(bytes);
    int body = 3;
    while (bytes[body] < 0) {
      body++;
    }
    body++;
    return WriteOp.parse(bytes, body);
  }
}

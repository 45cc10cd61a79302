package io.trunkline.hadoop.wire;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.hadoop.hdfs.protocol.datatransfer.PacketHeader;

/**
 * The beginning of a stock HDFS packet: payload length (4), header length (2), header. The body
 * that follows it is checksums, then data.
 */
public final class PacketHead {
  /** Bytes of the two lengths. */
  public static final int LENGTHS_BYTES = 6;

  /** Longest head accepted; stock ones are below 40 bytes. */
  public static final int MAX_BYTES = 512;

  /** Longest packet body accepted, as in stock HDFS. */
  public static final int MAX_BODY_BYTES = 16 << 20;

  private final byte[] bytes;
  private final int bodyLength;
  private final PacketHeader header;

  private PacketHead(byte[] bytes, int bodyLength, PacketHeader header) {
    this.bytes = bytes;
    this.bodyLength = bodyLength;
    this.header = header;
  }

  /**
   * Length of a head whose two lengths are known.
   *
   * @param lengths the first {@link #LENGTHS_BYTES} bytes
   * @return length of the whole head in bytes
   * @throws IOException when a length is out of bounds
   */
  static int length(byte[] lengths) throws IOException {
    ByteBuffer in = ByteBuffer.wrap(lengths);
    int payload = in.getInt();
    int header = in.getShort();
    if (payload < 4 || payload - 4 > MAX_BODY_BYTES) {
      throw new IOException("packet with a payload length of " + payload);
    }
    if (header < 0 || LENGTHS_BYTES + header > MAX_BYTES) {
      throw new IOException("packet with a header length of " + header);
    }
    return LENGTHS_BYTES + header;
  }

  /**
   * Parses a whole head.
   *
   * @param bytes the head, all of it and nothing else; kept, not copied
   * @return the head
   * @throws IOException when it is malformed
   */
  public static PacketHead parse(byte[] bytes) throws IOException {
    if (bytes.length < LENGTHS_BYTES || length(bytes) != bytes.length) {
      throw new IOException("packet head of " + bytes.length + " bytes does not fit its lengths");
    }
    int payload = ByteBuffer.wrap(bytes).getInt();
    PacketHeader header = new PacketHeader();
    header.setFieldsFromData(payload, Arrays.copyOfRange(bytes, LENGTHS_BYTES, bytes.length));
    int body = payload - 4;
    if (header.getDataLen() < 0 || header.getDataLen() > body || header.getOffsetInBlock() < 0) {
      throw new IOException(
          "packet with "
              + header.getDataLen()
              + " data bytes at "
              + header.getOffsetInBlock()
              + " in a body of "
              + body);
    }
    return new PacketHead(bytes, body, header);
  }

  /**
   * The head as it stood on the wire.
   *
   * @return its bytes, not a copy
   */
  public byte[] bytes() {
    return bytes;
  }

  /**
   * Length of checksums and data.
   *
   * @return bytes
   */
  public int bodyLength() {
    return bodyLength;
  }

  /**
   * Length of the data.
   *
   * @return bytes
   */
  public int dataLength() {
    return header.getDataLen();
  }

  /**
   * Where in the block the data begins.
   *
   * @return bytes
   */
  public long offset() {
    return header.getOffsetInBlock();
  }

  /**
   * Whether this is the empty packet that ends a block.
   *
   * @return true for it
   */
  public boolean last() {
    return header.isLastPacketInBlock();
  }

  /**
   * Whether two heads are the same bytes.
   *
   * @param other another head
   * @return true when they are
   */
  public boolean same(PacketHead other) {
    return Arrays.equals(bytes, other.bytes);
  }

  @Override
  public String toString() {
    return header.toString();
  }
}

package io.trunkline.hadoop.wire;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.code_intelligence.jazzer.junit.FuzzTest;
import io.trunkline.hadoop.Fuzzing;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.hdfs.protocol.datatransfer.Op;
import org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.PacketHeaderProto;

/** Anything as what stock HDFS says on a connection. */
class WireFuzz {
  /** The head of a packet; stock code reads the same out of it. */
  @FuzzTest
  void head(byte[] bytes) throws IOException {
    PacketHead head = Fuzzing.decode(bytes.length, 8, () -> PacketHead.parse(bytes));
    if (head == null) {
      return;
    }
    assertTrue(head.bodyLength() >= 0 && head.bodyLength() <= PacketHead.MAX_BODY_BYTES);
    assertTrue(head.dataLength() >= 0 && head.dataLength() <= head.bodyLength());
    assertTrue(head.offset() >= 0);
    PacketHeaderProto stock;
    try {
      stock =
          PacketHeaderProto.parseFrom(
              ByteBuffer.wrap(
                  bytes, PacketHead.LENGTHS_BYTES, bytes.length - PacketHead.LENGTHS_BYTES));
    } catch (IOException e) {
      return; // Its reader knows more rules; who gets the packet applies them.
    }
    assertEquals(stock.getOffsetInBlock(), head.offset());
    assertEquals(stock.getSeqno(), head.seqno());
    assertEquals(stock.getLastPacketInBlock(), head.last());
    assertEquals(stock.getDataLen(), head.dataLength());
  }

  /** Packets; the first byte says how they are cut, which changes nothing. */
  @FuzzTest
  void packets(byte[] bytes) {
    if (bytes.length == 0) {
      return;
    }
    byte[] rest = Arrays.copyOfRange(bytes, 1, bytes.length);
    List<String> cut = Fuzzing.decode(rest.length, 32, () -> framed(rest, 1 + (bytes[0] & 0xFF)));
    assertEquals(framed(rest, Integer.MAX_VALUE), cut);
  }

  private static List<String> framed(byte[] bytes, int piece) {
    List<String> packets = new ArrayList<>();
    PacketFramer framer = new PacketFramer();
    PacketFramer.Sink sink =
        (head, body, off) ->
            packets.add(
                head
                    + ": "
                    + Arrays.hashCode(Arrays.copyOfRange(body, off, off + head.bodyLength())));
    try {
      // One for all pieces: the memory is to be the framer's.
      ByteBuffer in = ByteBuffer.wrap(bytes);
      while (in.position() < bytes.length) {
        in.limit(Math.min(bytes.length, in.position() + Math.min(piece, bytes.length)));
        while (in.hasRemaining()) {
          framer.accept(in, sink);
        }
      }
    } catch (IOException e) {
      packets.add("no packet");
    }
    return packets;
  }

  /** The header of a write; nothing less than all of it is taken for one. */
  @FuzzTest
  void op(byte[] bytes) {
    ByteBuffer in = ByteBuffer.wrap(bytes);
    OpHeader.Kind kind = OpHeader.look(in);
    assertEquals(0, in.position());
    if (kind != OpHeader.Kind.WRITE) {
      return;
    }
    WriteOp op =
        Fuzzing.decode(bytes.length, 96, () -> OpHeader.parseWrite(ByteBuffer.wrap(bytes)));
    if (op == null) {
      return;
    }
    int length = op.header().length;
    assertArrayEquals(Arrays.copyOf(bytes, length), op.header());
    for (int part = 0; part < length; part++) {
      assertEquals(
          OpHeader.Kind.INCOMPLETE, OpHeader.look(ByteBuffer.wrap(bytes, 0, part).slice()));
    }
    assertTrue(op.checksum().getBytesPerChecksum() > 0);
    int body = 3;
    while (bytes[body] < 0) {
      body++;
    }
    WriteOp stock;
    try {
      stock = WriteOp.parseByStockCode(op.header(), body + 1);
    } catch (IOException e) {
      return; // Its reader knows more rules; who gets the header applies them.
    }
    assertEquals(WriteOpFieldsTest.said(stock), WriteOpFieldsTest.said(op));
  }

  /** What comes back on a write; the first byte says how it is cut, which changes nothing. */
  @FuzzTest
  void acks(byte[] bytes) {
    if (bytes.length == 0) {
      return;
    }
    byte[] rest = Arrays.copyOfRange(bytes, 1, bytes.length);
    long cut = Fuzzing.decode(rest.length, 96, () -> acknowledged(rest, 1 + (bytes[0] & 0xFF)));
    assertEquals(acknowledged(rest, Integer.MAX_VALUE), cut);
  }

  private static long acknowledged(byte[] bytes, int piece) {
    AckReader reader = new AckReader();
    long highest = AckReader.NONE;
    for (int at = 0; at < bytes.length; ) {
      int length = Math.min(piece, bytes.length - at);
      ByteBuffer in = ByteBuffer.wrap(bytes, at, length);
      highest = Math.max(highest, reader.accept(in));
      assertEquals(0, in.remaining());
      at += length;
    }
    return highest;
  }

  /** The beginning of a connection, byte by byte and at once. */
  @FuzzTest
  void firstOp(byte[] bytes) {
    Op told = Fuzzing.decode(bytes.length, 8, () -> new FirstOp().seen(ByteBuffer.wrap(bytes)));
    FirstOp byByte = new FirstOp();
    Op seen = null;
    for (int at = 0; at < bytes.length; at++) {
      Op op = byByte.seen(ByteBuffer.wrap(bytes, at, 1));
      seen = op != null ? op : seen;
    }
    assertEquals(told, seen);
    assertEquals(bytes.length >= 3, byByte.done());
  }
}

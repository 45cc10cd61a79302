package io.trunkline.hadoop.wire;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.StockBytes;
import io.trunkline.hadoop.ndn.wire.AnswerFrame;
import io.trunkline.hadoop.ndn.wire.ControlRecord;
import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.ndn.wire.SecureHello;
import io.trunkline.hadoop.ndn.wire.SegmentHeader;
import io.trunkline.hadoop.ndn.wire.Welcome;
import io.trunkline.hadoop.ndn.wire.WriteKey;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.hdfs.protocol.datatransfer.BlockConstructionStage;
import org.apache.hadoop.hdfs.protocol.datatransfer.PacketHeader;
import org.junit.jupiter.api.Test;

class WireTest {
  private static final Preamble NAMED =
      new Preamble("/hadoop/blocks/BP-1/1073741825/v=1001", 0x1122334455667788L, 64512);

  private static final Preamble SEALED =
      new Preamble(NAMED.name(), 5, 512, new WriteKey("sixteen bytes...".getBytes()));

  @Test
  void preambleRoundTripsAtEveryCut() throws IOException {
    for (Preamble preamble : List.of(NAMED, SEALED)) {
      byte[] bytes = preamble.encode();
      for (int cut = 0; cut < bytes.length; cut++) {
        ByteBuffer in = ByteBuffer.wrap(bytes, 0, cut);
        assertNull(Preamble.decode(in));
        assertEquals(0, in.position());
      }
      ByteBuffer in = ByteBuffer.wrap(Arrays.copyOf(bytes, bytes.length + 3));
      assertEquals(preamble, Preamble.decode(in));
      assertEquals(bytes.length, in.position());
    }
  }

  @Test
  void keysStandInNoText() {
    BlockToken token = new BlockToken("who".getBytes(), "sixteen bytes...".getBytes());
    assertFalse((SEALED.toString() + token).contains("sixteen"));
    assertFalse(SEALED.toString().contains(Arrays.toString(SEALED.key().bytes())));
  }

  @Test
  void secureHelloRoundTripsAtEveryCut() throws IOException {
    byte[] message = new byte[SecureHello.MESSAGE_BYTES];
    message[3] = 7;
    SecureHello hello = new SecureHello("identifier".getBytes(), "10.0.0.1:9866 dn1:9866", message);
    byte[] bytes = hello.encode();
    for (int cut = 0; cut < bytes.length; cut++) {
      ByteBuffer in = ByteBuffer.wrap(bytes, 0, cut);
      assertEquals(
          cut < 4 ? SecureHello.Kind.UNKNOWN : SecureHello.Kind.SECURE, SecureHello.look(in));
      assertNull(SecureHello.decode(in));
      assertEquals(0, in.position());
    }
    ByteBuffer in = ByteBuffer.wrap(Arrays.copyOf(bytes, bytes.length + 3));
    SecureHello read = SecureHello.decode(in);
    assertEquals(bytes.length, in.position());
    assertArrayEquals(hello.identifier(), read.identifier());
    assertEquals(hello.address(), read.address());
    assertArrayEquals(message, read.message());
  }

  @Test
  void secureHelloRefusesStrangers() {
    byte[] hello =
        new SecureHello(new byte[10], "dn1:9866", new byte[SecureHello.MESSAGE_BYTES]).encode();
    assertEquals(SecureHello.Kind.OTHER, SecureHello.look(ByteBuffer.wrap(NAMED.encode())));
    assertEquals(SecureHello.Kind.OTHER, SecureHello.look(ByteBuffer.wrap(new byte[] {'G'})));
    for (int[] change :
        new int[][] {
          {4, 2}, {4, 4}, {5, 1}, {6, 0x7F}, {6, 0x10}, {7, 0}, {8, 2}, {9, 0}, {20, 0x1F}, {20, -1}
        }) {
      byte[] bytes = Arrays.copyOf(hello, 40_000);
      bytes[change[0]] = (byte) change[1];
      if (change[0] == 6 && change[1] == 0x10) {
        bytes[7] = 1;
      }
      assertThrows(
          IOException.class,
          () -> SecureHello.decode(ByteBuffer.wrap(bytes)),
          Arrays.toString(change));
    }
  }

  /** What both ends have seen is the welcome and all of the hello before its message. */
  @Test
  void thePrologueHoldsBothVersions() throws IOException {
    Welcome welcome = Welcome.draw();
    byte[] prologue = SecureHello.prologue(welcome, new byte[] {1, 2}, "dn1:9866");
    byte[] hello = new SecureHello(new byte[] {1, 2}, "dn1:9866", new byte[48]).encode();
    byte[] expected =
        ByteBuffer.allocate(Welcome.BYTES + hello.length - 48)
            .put(welcome.encode())
            .put(hello, 0, hello.length - 48)
            .array();
    assertArrayEquals(expected, prologue);
  }

  @Test
  void preambleRefusesStrangers() {
    for (byte[] stranger :
        new byte[][] {{0}, {'T', 'R', 'X'}, "GET / HTTP/1.1".getBytes(), StockBytes.heartbeat()}) {
      assertThrows(IOException.class, () -> Preamble.decode(ByteBuffer.wrap(stranger)));
    }
    for (int[] change : new int[][] {{4, 2}, {4, 4}, {5, 2}, {6, 0x7F}, {7, 0}, {61, 0x7F}}) {
      byte[] bytes = Arrays.copyOf(NAMED.encode(), 2000);
      bytes[change[0] == 61 ? NAMED.encode().length - 4 : change[0]] = (byte) change[1];
      assertThrows(
          IOException.class,
          () -> Preamble.decode(ByteBuffer.wrap(bytes)),
          Arrays.toString(change));
    }
  }

  @Test
  void segmentHeaderRoundTripsAndRefuses() throws IOException {
    SegmentHeader header = new SegmentHeader(2, 512, 64512, 129024);
    byte[] bytes = new byte[SegmentHeader.BYTES];
    header.encode(bytes);
    assertEquals(header, SegmentHeader.decode(bytes, 64512 + 126 * 4));
    assertThrows(IOException.class, () -> SegmentHeader.decode(bytes, 64512));
    SegmentHeader none = new SegmentHeader(0, 512, 100, 0);
    none.encode(bytes);
    assertEquals(none, SegmentHeader.decode(bytes, 100));
    new SegmentHeader(2, 1, Integer.MAX_VALUE, 0).encode(bytes);
    assertThrows(IOException.class, () -> SegmentHeader.decode(bytes, 64512));
    bytes[0] = 0;
    assertThrows(IOException.class, () -> SegmentHeader.decode(bytes, 100));
  }

  @Test
  void controlRecordRoundTripsAtEveryCut() throws IOException {
    byte[] packet = StockBytes.packet(64512, 7, false, new byte[1000]);
    PacketHead head = PacketHead.parse(Arrays.copyOf(packet, packet.length - 1000 - 8));
    for (ControlRecord record :
        new ControlRecord[] {
          ControlRecord.inline(head),
          ControlRecord.again(head),
          new ControlRecord(
              ControlRecord.BLOCK_SEGMENT, 0xFFFFFFFFL, head, StockBytes.random(new Random(1), 16)),
          new ControlRecord(
              ControlRecord.STREAM_SEGMENT, 3, head, StockBytes.random(new Random(2), 255 * 16))
        }) {
      ByteBuffer out = ByteBuffer.allocate(ControlRecord.MAX_BYTES);
      record.encode(out);
      out.flip();
      for (int cut = 0; cut < out.limit(); cut++) {
        assertNull(ControlRecord.decode(ByteBuffer.wrap(out.array(), 0, cut)));
      }
      ControlRecord back = ControlRecord.decode(out);
      assertFalse(out.hasRemaining());
      assertEquals(record.kind(), back.kind());
      assertEquals(record.number(), back.number());
      assertArrayEquals(record.digests(), back.digests());
      assertTrue(record.head().same(back.head()));
      assertEquals(64512, back.head().offset());
      assertEquals(1000, back.head().dataLength());
      assertEquals(1008, back.head().bodyLength());
    }
  }

  @Test
  void answersComeApartAtEveryCut() throws IOException {
    Random random = new Random(21);
    for (int round = 0; round < 300; round++) {
      ByteArrayOutputStream stock = new ByteArrayOutputStream();
      ByteArrayOutputStream framed = new ByteArrayOutputStream();
      List<Long> asked = new ArrayList<>();
      for (int i = random.nextInt(8); i >= 0; i--) {
        if (random.nextInt(3) == 0) {
          long seqno = random.nextLong();
          asked.add(seqno);
          framed.write(AnswerFrame.ask(seqno));
          continue;
        }
        byte[] bytes = StockBytes.random(random, 1 + random.nextInt(70));
        ByteBuffer head = ByteBuffer.allocate(AnswerFrame.STOCK_HEAD_BYTES);
        AnswerFrame.stock(bytes.length, head);
        framed.write(head.array());
        framed.write(bytes);
        stock.write(bytes);
      }
      ByteBuffer in = round % 2 == 0 ? ByteBuffer.allocate(4096) : ByteBuffer.allocateDirect(4096);
      byte[] all = framed.toByteArray();
      AnswerFrame.Reader reader = new AnswerFrame.Reader();
      ByteArrayOutputStream got = new ByteArrayOutputStream();
      List<Long> gotAsked = new ArrayList<>();
      int at = 0;
      while (at < all.length) {
        int part = Math.min(all.length - at, 1 + random.nextInt(40));
        in.put(7, all, at, part);
        int count = reader.accept(in, 7, 7 + part, gotAsked::add);
        byte[] taken = new byte[count];
        in.get(7, taken);
        got.write(taken);
        at += part;
      }
      assertArrayEquals(stock.toByteArray(), got.toByteArray());
      assertEquals(asked, gotAsked);
    }
    assertThrows(
        IOException.class,
        () -> new AnswerFrame.Reader().accept(ByteBuffer.wrap(new byte[] {2}), 0, 1, s -> {}));
  }

  @Test
  void packetHeadReadsWhatStockCodeWrites() throws IOException {
    Random random = new Random(13);
    for (int round = 0; round < 2000; round++) {
      int body = random.nextInt(PacketHead.MAX_BODY_BYTES);
      int data = random.nextInt(body + 1);
      long offset = random.nextLong() & Long.MAX_VALUE;
      boolean last = random.nextBoolean();
      byte[] bytes =
          new PacketHeader(4 + body, offset, random.nextLong(), last, data, random.nextBoolean())
              .getBytes();
      PacketHead head = PacketHead.parse(bytes);
      assertEquals(body, head.bodyLength());
      assertEquals(data, head.dataLength());
      assertEquals(offset, head.offset());
      assertEquals(last, head.last());
    }
  }

  @Test
  void packetHeadReadsAsStockCodeDoes() {
    Random random = new Random(14);
    byte[] good = new PacketHeader(4 + 1000, 5, 6, false, 900, true).getBytes();
    int agreed = 0;
    for (int round = 0; round < 50_000; round++) {
      byte[] bytes = Arrays.copyOf(good, 6 + random.nextInt(good.length + 12));
      for (int i = random.nextInt(4); i > 0 && bytes.length > 6; i--) {
        bytes[6 + random.nextInt(bytes.length - 6)] = (byte) random.nextInt();
      }
      ByteBuffer.wrap(bytes).putShort(4, (short) (bytes.length - 6));
      PacketHeader stock = new PacketHeader();
      boolean stockReads;
      try {
        stock.setFieldsFromData(1004, Arrays.copyOfRange(bytes, 6, bytes.length));
        stockReads = true;
      } catch (IOException e) {
        stockReads = false;
      }
      try {
        PacketHead ours = PacketHead.parse(bytes);
        if (stockReads) {
          assertEquals(stock.getOffsetInBlock(), ours.offset());
          assertEquals(stock.getDataLen(), ours.dataLength());
          assertEquals(stock.isLastPacketInBlock(), ours.last());
          agreed++;
        }
      } catch (IOException e) {
        assertFalse(
            stockReads
                && !e.getMessage().contains("unknown encoding")
                && stock.getDataLen() >= 0
                && stock.getDataLen() <= 1000
                && stock.getOffsetInBlock() >= 0,
            () -> Arrays.toString(bytes) + " " + e);
      }
    }
    assertTrue(agreed > 1000, "agreed on " + agreed);
  }

  @Test
  void opHeaderIsFoundAtEveryCut() throws IOException {
    byte[] header =
        StockBytes.writeHeader(3, BlockConstructionStage.PIPELINE_SETUP_CREATE, "client");
    for (int cut = 0; cut < header.length; cut++) {
      assertEquals(OpHeader.Kind.INCOMPLETE, OpHeader.look(ByteBuffer.wrap(header, 0, cut)));
    }
    ByteBuffer in = ByteBuffer.wrap(Arrays.copyOf(header, header.length + 9));
    assertEquals(OpHeader.Kind.WRITE, OpHeader.look(in));
    WriteOp op = OpHeader.parseWrite(in);
    assertEquals(9, in.remaining());
    assertArrayEquals(header, op.header());
    assertEquals(StockBytes.POOL, op.pool());
    assertEquals(StockBytes.BLOCK, op.block());
    assertEquals(StockBytes.GENSTAMP, op.genstamp());
    assertEquals(2, op.targets());
    assertEquals(3, op.pipelineSize());
    assertEquals(StockBytes.CHECKSUM, op.checksum());
    assertTrue(op.firstHop());
    assertTrue(op.mirrored());
    assertNull(op.token());
  }

  @Test
  void otherBeginningsAreLeftAlone() {
    byte[] sasl = {(byte) 0xDE, (byte) 0xAD, (byte) 0xBE, (byte) 0xEF};
    byte[] read = {0, 28, 81};
    byte[] endlessLength = {0, 28, 80, -1, -1, -1, -1, -1, -1};
    byte[] hugeLength = {0, 28, 80, -1, -1, -1, 127};
    for (byte[] other : new byte[][] {sasl, read, endlessLength, hugeLength}) {
      assertEquals(OpHeader.Kind.OTHER, OpHeader.look(ByteBuffer.wrap(other)));
    }
  }

  @Test
  void transfersAndClosesAreNotMirrored() throws IOException {
    for (BlockConstructionStage stage : BlockConstructionStage.values()) {
      WriteOp op = OpHeader.parseWrite(ByteBuffer.wrap(StockBytes.writeHeader(1, stage, "c")));
      boolean expected = stage.name().startsWith("PIPELINE_SETUP");
      assertEquals(expected, op.mirrored(), stage.name());
    }
    WriteOp replication =
        OpHeader.parseWrite(
            ByteBuffer.wrap(
                StockBytes.writeHeader(1, BlockConstructionStage.PIPELINE_SETUP_CREATE, "")));
    assertFalse(replication.mirrored());
  }

  @Test
  void framerGivesTheSamePacketsHoweverTheyAreCut() throws IOException {
    Random random = new Random(7);
    for (int round = 0; round < 200; round++) {
      int count = 1 + random.nextInt(6);
      byte[][] packets = new byte[count][];
      int total = 0;
      for (int i = 0; i < count; i++) {
        int length = random.nextInt(4) == 0 ? 0 : random.nextInt(70_000);
        packets[i] = StockBytes.packet(i * 1000L, i, false, StockBytes.random(random, length));
        total += packets[i].length;
      }
      ByteBuffer all = ByteBuffer.allocate(total);
      for (byte[] packet : packets) {
        all.put(packet);
      }
      all.flip();
      PacketFramer framer = new PacketFramer();
      int[] seen = {0};
      PacketFramer.Sink sink =
          (head, body, off) -> {
            byte[] packet = packets[seen[0]++];
            int headLength = head.bytes().length;
            assertArrayEquals(Arrays.copyOf(packet, headLength), head.bytes());
            assertArrayEquals(
                Arrays.copyOfRange(packet, headLength, packet.length),
                Arrays.copyOfRange(body, off, off + head.bodyLength()));
          };
      while (all.hasRemaining()) {
        int part = Math.min(all.remaining(), 1 + random.nextInt(round % 2 == 0 ? 20_000 : 200_000));
        ByteBuffer slice = all.slice(all.position(), part);
        if (random.nextInt(4) == 0) {
          slice = ByteBuffer.allocateDirect(part).put(slice).flip();
        }
        while (slice.hasRemaining()) {
          framer.accept(slice, sink);
        }
        all.position(all.position() + part);
      }
      assertEquals(count, seen[0]);
    }
  }

  @Test
  void randomBytesNeverBreakADecoderOtherwiseThanWithAnIoException() {
    Random random = new Random(11);
    byte[] named = NAMED.encode();
    byte[] header =
        StockBytes.writeHeader(3, BlockConstructionStage.PIPELINE_SETUP_CREATE, "client");
    byte[] packet = StockBytes.packet(0, 0, false, new byte[100]);
    ByteBuffer record = ByteBuffer.allocate(packet.length + 7);
    record.put((byte) 1).putShort((short) (packet.length - 104)).putInt(5).put(packet);
    byte[] hello = new SecureHello(new byte[20], "dn1:9866", new byte[48]).encode();
    byte[][] seeds = {named, hello, SEALED.encode(), header, packet, record.array(), new byte[64]};
    for (int round = 0; round < 40_000; round++) {
      byte[] bytes = seeds[random.nextInt(seeds.length)].clone();
      for (int i = random.nextInt(4); i >= 0; i--) {
        bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
      }
      ByteBuffer in = ByteBuffer.wrap(bytes, 0, random.nextInt(bytes.length + 1));
      quietly(() -> Preamble.decode(in.duplicate()));
      quietly(() -> SecureHello.decode(in.duplicate()));
      quietly(() -> ControlRecord.decode(in.duplicate()));
      quietly(() -> new PacketFramer().accept(in.duplicate(), (h, b, o) -> {}));
      quietly(
          () -> {
            if (OpHeader.look(in) == OpHeader.Kind.WRITE) {
              OpHeader.parseWrite(in.duplicate());
            }
          });
      if (bytes.length >= SegmentHeader.BYTES) {
        quietly(() -> SegmentHeader.decode(bytes, random.nextInt(70_000)));
      }
    }
  }

  private interface Attempt {
    void run() throws IOException;
  }

  private static void quietly(Attempt attempt) {
    try {
      attempt.run();
    } catch (IOException expected) {
      // what a decoder says of bytes that are wrong
    }
  }
}

package io.trunkline.hadoop.ndn.write;

import static org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.Status.ERROR;
import static org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.Status.SUCCESS;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.StockBytes;
import io.trunkline.hadoop.ndn.NdnException;
import io.trunkline.hadoop.ndn.wire.AnswerFrame;
import io.trunkline.hadoop.ndn.wire.ControlRecord;
import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.ndn.wire.SegmentCut.Piece;
import io.trunkline.hadoop.tap.BytesTap;
import io.trunkline.hadoop.wire.OpHeader;
import io.trunkline.hadoop.wire.PacketHead;
import io.trunkline.hadoop.wire.WriteOp;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.WritableByteChannel;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.hdfs.protocol.datatransfer.BlockConstructionStage;
import org.apache.hadoop.security.token.Token;
import org.junit.jupiter.api.Test;

class NamedWritesTest {
  private static final Preamble PREAMBLE =
      new Preamble("/hadoop/blocks/BP-1/1/v=1", 42, StockBytes.SEGMENT);

  private final ByteArrayOutputStream sent = new ByteArrayOutputStream();
  private final WritableByteChannel wire = Channels.newChannel(sent);
  private final Remembering publisher = new Remembering();
  private long asked = -1;

  private static final class Remembering implements Publisher {
    final List<String> published = new ArrayList<>();
    final Map<String, byte[]> kept = new HashMap<>();
    final ByteArrayOutputStream bodies = new ByteArrayOutputStream();
    boolean broken;
    Boolean ended;

    @Override
    public void block(
        long segment, Piece piece, byte[] body, int off, boolean more, byte[] digests, int digestAt)
        throws IOException {
      take("block " + segment, piece, body, off, more);
    }

    @Override
    public void stream(
        long segment, Piece piece, byte[] body, int off, boolean more, byte[] digests, int digestAt)
        throws IOException {
      take("stream " + segment, piece, body, off, more);
    }

    private void take(String what, Piece piece, byte[] body, int off, boolean more)
        throws IOException {
      if (broken) {
        throw new NdnException("no room");
      }
      published.add(what + (more ? ".." : ""));
      kept.put(
          what,
          ByteBuffer.allocate(piece.sumsLength() + piece.dataLength())
              .put(body, off + piece.sumsAt(), piece.sumsLength())
              .put(body, off + piece.dataAt(), piece.dataLength())
              .array());
      bodies.write(body, off + piece.sumsAt(), piece.sumsLength());
      bodies.write(body, off + piece.dataAt(), piece.dataLength());
    }

    @Override
    public boolean kept(boolean block, long segment, Piece piece, byte[] body) {
      byte[] segmentBody = kept.get((block ? "block " : "stream ") + segment);
      if (segmentBody == null) {
        return false;
      }
      System.arraycopy(segmentBody, 0, body, piece.sumsAt(), piece.sumsLength());
      System.arraycopy(segmentBody, piece.sumsLength(), body, piece.dataAt(), piece.dataLength());
      return true;
    }

    @Override
    public void starved() {
      published.add("starved");
    }

    @Override
    public void blockAcknowledged(long upto) {
      published.add("block acknowledged " + upto);
    }

    @Override
    public void streamAcknowledged(long upto) {
      published.add("stream acknowledged " + upto);
    }

    @Override
    public void close(boolean blockEnded) {
      ended = blockEnded;
    }
  }

  private BytesTap tap(Planner planner) {
    return new BytesTap(
        new NamedWrites(planner, (connection, write) -> connection.moveTo(null)), wire);
  }

  private BytesTap published() {
    return published(0);
  }

  private BytesTap published(int inlineBytes) {
    return tap(op -> new Plan.Produce(PREAMBLE, publisher, inlineBytes));
  }

  private static void send(BytesTap tap, byte[]... parts) throws IOException {
    for (byte[] part : parts) {
      tap.write(part);
    }
  }

  /** Stock bytes come back, as a plug-in frames them; stock code reads them as they are. */
  private static void answer(BytesTap tap, byte[] stock) throws IOException {
    ByteBuffer frame = ByteBuffer.allocate(AnswerFrame.STOCK_HEAD_BYTES + stock.length);
    AnswerFrame.stock(stock.length, frame);
    assertArrayEquals(stock, tap.answered(frame.put(stock).array()));
  }

  private static void ask(BytesTap tap, long seqno) throws IOException {
    assertEquals(0, tap.answered(AnswerFrame.ask(seqno)).length);
  }

  private List<ControlRecord> records(byte[] header) throws IOException {
    ByteBuffer in = ByteBuffer.wrap(sent.toByteArray());
    assertEquals(PREAMBLE, Preamble.decode(in));
    byte[] passed = new byte[header.length];
    in.get(passed);
    assertArrayEquals(header, passed);
    List<ControlRecord> records = new ArrayList<>();
    while (in.hasRemaining()) {
      ControlRecord record = ControlRecord.decode(in);
      records.add(record);
      if (!record.byName()) {
        in.position(in.position() + record.head().bodyLength());
      }
    }
    return records;
  }

  private static String kinds(List<ControlRecord> records) {
    StringBuilder text = new StringBuilder();
    for (ControlRecord record : records) {
      text.append(record.kind()).append(':').append(record.number()).append(' ');
    }
    return text.toString().trim();
  }

  private static byte[] header(long blockBytes) {
    return StockBytes.writeHeader(
        3, 3, BlockConstructionStage.PIPELINE_SETUP_CREATE, "client", new Token<>(), blockBytes);
  }

  @Test
  void wholePacketsBecomeSegmentsAndTheRestAStream() throws IOException {
    int seg = StockBytes.SEGMENT;
    byte[] header = header(128L << 20);
    BytesTap tap = published();
    send(
        tap,
        header,
        StockBytes.packet(0, 0, false, new byte[seg]),
        StockBytes.heartbeat(),
        StockBytes.packet(seg, 1, false, new byte[seg]),
        StockBytes.packet(2L * seg, 2, false, new byte[100]),
        StockBytes.packet(2L * seg + 100, 3, false, new byte[412]),
        StockBytes.packet(3L * seg, 4, false, new byte[seg]),
        StockBytes.packet(4L * seg, 5, true, new byte[0]));
    assertEquals("1:0 0:0 1:1 2:0 2:1 2:2 0:0", kinds(records(header)));
    assertEquals(
        List.of("block 0", "block 1", "stream 0", "stream 1", "stream 2"), publisher.published);
    tap.close();
    assertTrue(publisher.ended);
  }

  @Test
  void theEndOfAFullBlockIsASegmentThoughShort() throws IOException {
    int seg = StockBytes.SEGMENT;
    byte[] header = header(seg + 1000);
    BytesTap tap = published();
    send(
        tap,
        header,
        StockBytes.packet(0, 0, false, new byte[seg]),
        StockBytes.packet(seg, 1, false, new byte[1000]));
    assertEquals("1:0 1:1", kinds(records(header)));
    tap.close();
    assertFalse(publisher.ended);
  }

  @Test
  void smallPacketsGoInline() throws IOException {
    int seg = StockBytes.SEGMENT;
    byte[] header = header(128L << 20);
    send(
        published(1000),
        header,
        // Flushed early; what follows begins with the chunk that was not full.
        StockBytes.packet(0, 0, false, new byte[100]),
        StockBytes.packet(0, 1, false, new byte[seg]),
        // It may be the block's end.
        StockBytes.packet(seg, 2, false, new byte[999]),
        StockBytes.packet(seg + 512, 3, false, new byte[999]),
        StockBytes.packet(seg + 1024, 4, false, new byte[1000]),
        StockBytes.packet(2L * seg, 5, false, new byte[999]));
    assertEquals("0:0 1:0 2:0 0:0 2:1 0:0", kinds(records(header)));
    assertEquals(List.of("block 0", "stream 0", "stream 1"), publisher.published);
  }

  @Test
  void largePacketsBecomeSeveralSegments() throws IOException {
    int seg = StockBytes.SEGMENT;
    byte[] header = header(9L * seg + 1000);
    BytesTap tap = published();
    send(
        tap,
        header,
        StockBytes.packet(0, 0, false, new byte[4 * seg]),
        StockBytes.packet(4L * seg, 1, false, new byte[4 * seg]),
        StockBytes.packet(8L * seg, 2, false, new byte[seg + 1000]));
    assertEquals("1:0 1:4 1:8", kinds(records(header)));
    assertEquals(
        "block 0.. block 1.. block 2.. block 3 block 4.. block 5.. block 6.. block 7"
            + " block 8.. block 9",
        String.join(" ", publisher.published));
  }

  @Test
  void largePacketsThatDoNotFillSegmentsAreAStream() throws IOException {
    int seg = StockBytes.SEGMENT;
    byte[] header = header(128L << 20);
    BytesTap tap = published();
    send(
        tap,
        header,
        StockBytes.packet(0, 0, false, new byte[2 * seg + 512]),
        StockBytes.packet(2L * seg + 512, 1, false, new byte[seg]));
    assertEquals("2:0 2:3", kinds(records(header)));
    assertEquals("stream 0.. stream 1.. stream 2 stream 3", String.join(" ", publisher.published));
  }

  @Test
  void whatThePipelineAcknowledgesIsLetGo() throws IOException {
    int seg = StockBytes.SEGMENT;
    BytesTap tap = published();
    send(
        tap,
        header(128L << 20),
        StockBytes.packet(0, 0, false, new byte[2 * seg]),
        StockBytes.packet(2L * seg, 1, false, new byte[2 * seg]),
        StockBytes.packet(4L * seg, 2, false, new byte[100]),
        StockBytes.packet(4L * seg + 100, 3, false, new byte[412]));
    publisher.published.clear();
    answer(tap, StockBytes.writeAnswer());
    answer(tap, StockBytes.ack(0, SUCCESS, SUCCESS, SUCCESS));
    answer(tap, StockBytes.ack(-1, SUCCESS, SUCCESS, SUCCESS));
    answer(tap, StockBytes.ack(2, SUCCESS, SUCCESS, SUCCESS));
    answer(tap, StockBytes.ack(3, SUCCESS, ERROR, SUCCESS));
    assertEquals(
        List.of("block acknowledged 1", "block acknowledged 3", "stream acknowledged 0"),
        publisher.published);
  }

  @Test
  void aBodyThatCannotBePublishedGoesInline() throws IOException {
    byte[] header = header(128L << 20);
    publisher.broken = true;
    BytesTap tap = published();
    byte[] packet =
        StockBytes.packet(0, 0, false, StockBytes.random(new Random(1), StockBytes.SEGMENT));
    send(tap, header, packet);
    assertEquals("0:0", kinds(records(header)));
    byte[] out = sent.toByteArray();
    int body = packet.length - 33;
    assertArrayEquals(
        Arrays.copyOfRange(packet, 33, packet.length),
        Arrays.copyOfRange(out, out.length - body, out.length));
  }

  @Test
  void whatIsAskedForIsSentFromWhatIsKeptAndTheRestInline() throws IOException {
    int seg = StockBytes.SEGMENT;
    byte[] header = header(128L << 20);
    BytesTap tap = published();
    Random random = new Random(9);
    byte[][] packets = {
      StockBytes.packet(0, 0, false, StockBytes.random(random, seg)),
      StockBytes.packet(seg, 1, false, StockBytes.random(random, 2 * seg)),
      StockBytes.heartbeat(),
      StockBytes.packet(3L * seg, 2, false, StockBytes.random(random, 700)),
      StockBytes.packet(3L * seg + 700, 3, false, StockBytes.random(random, seg)),
    };
    send(tap, header);
    send(tap, packets[0], packets[1], packets[2], packets[3]);
    answer(tap, StockBytes.writeAnswer());
    answer(tap, StockBytes.ack(0, SUCCESS, SUCCESS, SUCCESS));
    publisher.published.clear();
    sent.reset();
    ask(tap, 2);
    assertEquals(1, sent(packets[3], ControlRecord.AGAIN));
    // Another DataNode is further behind: what was sent is not sent to it twice.
    ask(tap, 0);
    ask(tap, 1);
    assertEquals(1, sent(packets[1], ControlRecord.AGAIN));
    send(tap, packets[4]);
    assertEquals(1, sent(packets[4], ControlRecord.INLINE));
    assertEquals(List.of("starved"), publisher.published, "and no more is published");
  }

  /** How many records with bodies were sent; the last is that of a packet. */
  private int sent(byte[] packet, byte kind) throws IOException {
    int count = 0;
    ByteBuffer in = ByteBuffer.wrap(sent.toByteArray());
    while (in.hasRemaining()) {
      ControlRecord record = ControlRecord.decode(in);
      byte[] body = new byte[record.head().bodyLength()];
      in.get(body);
      count++;
      if (!in.hasRemaining()) {
        assertEquals(kind, record.kind());
        byte[] whole =
            ByteBuffer.allocate(packet.length).put(record.head().bytes()).put(body).array();
        assertArrayEquals(packet, whole);
      }
    }
    sent.reset();
    return count;
  }

  @Test
  void whoeverSendsAWriteIsAskedForWhatIsAskedHere() throws IOException {
    WriteOp upstream = parse(3);
    try (Inflow inflow = Inflow.open(upstream, PREAMBLE, seqno -> asked = seqno)) {
      BytesTap tap = tap(op -> new Plan.Relay(Inflow.upstreamOf(op)));
      send(tap, parse(2).header());
      byte[] packet = StockBytes.packet(0, 0, false, new byte[StockBytes.SEGMENT]);
      inflow.received(record(packet, ControlRecord.BLOCK_SEGMENT, 0));
      send(tap, packet);
      ask(tap, 17);
      assertEquals(17, asked);
      sent.reset();
      PacketHead head = record(packet, ControlRecord.BLOCK_SEGMENT, 0).head();
      inflow.again(
          head, Arrays.copyOfRange(packet, packet.length - head.bodyLength(), packet.length));
      assertEquals(1, sent(packet, ControlRecord.AGAIN));
      // One that did not come by name here goes on along with its record.
      ControlRecord second = record(packet, ControlRecord.BLOCK_SEGMENT, 1);
      inflow.received(second);
      inflow.cameInline(second);
      send(tap, packet);
      assertEquals(1, sent(packet, ControlRecord.INLINE));
    }
  }

  /** Stock code finds out by itself, and blames the one that is dead. */
  @Test
  void aDataNodeThatTakesNoBodyAnyMoreDoesNotEndTheWriteBeforeIt() throws IOException {
    byte[] packet = StockBytes.packet(0, 0, false, new byte[StockBytes.SEGMENT]);
    PacketHead head = record(packet, ControlRecord.BLOCK_SEGMENT, 0).head();
    AtomicInteger tried = new AtomicInteger();
    try (Inflow inflow = Inflow.open(parse(3), PREAMBLE, seqno -> asked = seqno)) {
      inflow.relayTo(
          (to, body) -> {
            tried.incrementAndGet();
            throw new IOException("Connection reset by peer");
          });
      inflow.again(head, packet);
      inflow.again(head, packet);
    }
    assertEquals(1, tried.get());
  }

  @Test
  void aPacketOfTooManySegmentsGoesInline() throws IOException {
    Preamble small = new Preamble(PREAMBLE.name(), 42, 512);
    byte[] header = header(128L << 20);
    BytesTap tap = tap(op -> new Plan.Produce(small, publisher, 0));
    send(
        tap,
        header,
        StockBytes.packet(0, 0, false, new byte[255 * 512]),
        StockBytes.packet(255 * 512, 1, false, new byte[256 * 512]));
    assertEquals(255, publisher.published.size());
  }

  @Test
  void anythingThatIsNoWritePassesAsItIs() throws IOException {
    byte[] read = {0, 28, 81, 5, 1, 2, 3, 4, 5};
    BytesTap tap =
        tap(
            op -> {
              throw new AssertionError("no write");
            });
    for (byte b : read) {
      send(tap, new byte[] {b});
    }
    assertTrue(tap.moved(), "the stock port takes it");
    assertTrue(tap.passesAll());
    assertArrayEquals(read, sent.toByteArray());
  }

  @Test
  void aPlainWriteIsUnchanged() throws IOException {
    byte[] header = header(128L << 20);
    byte[] packet = StockBytes.packet(0, 0, false, new byte[1000]);
    BytesTap tap = tap(op -> new Plan.Plain());
    send(tap, header);
    assertTrue(tap.moved(), "the stock port takes it");
    assertTrue(tap.passesAll());
    send(tap, packet);
    byte[] out = sent.toByteArray();
    assertArrayEquals(header, Arrays.copyOf(out, header.length));
    assertArrayEquals(packet, Arrays.copyOfRange(out, header.length, out.length));
  }

  @Test
  void cutsMakeNoDifference() throws IOException {
    Random random = new Random(3);
    int seg = StockBytes.SEGMENT;
    byte[] header = header(128L << 20);
    ByteArrayOutputStream stock = new ByteArrayOutputStream();
    stock.write(header);
    for (int i = 0; i < 5; i++) {
      stock.write(StockBytes.packet((long) i * seg, i, false, StockBytes.random(random, seg)));
    }
    byte[] all = stock.toByteArray();
    BytesTap whole = published();
    send(whole, all);
    byte[] expectedWire = sent.toByteArray();
    byte[] expectedBodies = publisher.bodies.toByteArray();
    for (int round = 0; round < 50; round++) {
      sent.reset();
      publisher.bodies.reset();
      BytesTap tap = published();
      int at = 0;
      while (at < all.length) {
        int part = Math.min(all.length - at, 1 + random.nextInt(100_000));
        send(tap, Arrays.copyOfRange(all, at, at + part));
        at += part;
      }
      assertArrayEquals(expectedWire, sent.toByteArray());
      assertArrayEquals(expectedBodies, publisher.bodies.toByteArray());
    }
  }

  @Test
  void aRelayPassesRecordsWithoutBodies() throws IOException {
    WriteOp upstream = parse(3);
    try (Inflow inflow = Inflow.open(upstream, PREAMBLE, seqno -> asked = seqno)) {
      WriteOp downstream = parse(2);
      assertEquals(inflow, Inflow.upstreamOf(downstream));
      BytesTap tap = tap(op -> new Plan.Relay(Inflow.upstreamOf(op)));
      byte[] header = downstream.header();
      send(tap, header);
      byte[] first = StockBytes.packet(0, 0, false, new byte[StockBytes.SEGMENT]);
      byte[] unknown = StockBytes.packet(StockBytes.SEGMENT, 1, false, new byte[10]);
      inflow.received(record(first, ControlRecord.BLOCK_SEGMENT, 0));
      send(tap, first, unknown);
      assertEquals("1:0 0:0", kinds(records(header)));
      assertTrue(sent.size() < 2000);
    }
    assertEquals(null, Inflow.upstreamOf(parse(2)));
  }

  @Test
  void anotherConnectionCannotStandInForTheWriteThatComesIn() throws Exception {
    WriteOp upstream = parse(3);
    Preamble forged = new Preamble(PREAMBLE.name(), 666, StockBytes.SEGMENT);
    try (Inflow inflow = Inflow.open(upstream, PREAMBLE, seqno -> asked = seqno)) {
      Thread stranger = new Thread(() -> Inflow.open(upstream, forged, seqno -> {}));
      stranger.start();
      stranger.join();
      assertEquals(inflow, Inflow.upstreamOf(parse(2)));
    }
    assertEquals(null, Inflow.upstreamOf(parse(2)));
  }

  private static WriteOp parse(int left) throws IOException {
    return OpHeader.parseWrite(
        ByteBuffer.wrap(
            StockBytes.writeHeader(
                3,
                left,
                BlockConstructionStage.PIPELINE_SETUP_CREATE,
                "client",
                new Token<>(),
                128L << 20)));
  }

  private static ControlRecord record(byte[] packet, byte kind, long number) throws IOException {
    int head = 6 + ByteBuffer.wrap(packet, 4, 2).getShort();
    return new ControlRecord(
        kind,
        number,
        PacketHead.parse(Arrays.copyOf(packet, head)),
        new byte[ControlRecord.DIGEST_BYTES]);
  }
}

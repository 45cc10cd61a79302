package io.trunkline.hadoop.ndn.datanode;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.StockBytes;
import io.trunkline.hadoop.ndn.Names;
import io.trunkline.hadoop.ndn.NdnException;
import io.trunkline.hadoop.ndn.datanode.PublishedSegments.Segment;
import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.ndn.write.NamedWrites;
import io.trunkline.hadoop.ndn.write.Plan;
import io.trunkline.hadoop.tap.BytesTap;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.ReadableByteChannel;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.hdfs.protocol.datatransfer.BlockConstructionStage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The tap's output, read back by the DataNode's input, must be the stock bytes. */
@Timeout(60)
class NamedInputTest {
  private static final Preamble PREAMBLE = PublishedSegments.PREAMBLE;

  private final PublishedSegments network = new PublishedSegments();
  private final List<Long> asked = new ArrayList<>();
  private final NamedInput.Answers answers =
      new NamedInput.Answers() {
        @Override
        public void begin() {}

        @Override
        public void ask(long seqno) {
          asked.add(seqno);
        }
      };

  private int failures;

  private SegmentSource source(String prefix) {
    return network.source(
        prefix,
        piece -> {
          if (failures > 0) {
            failures--;
            throw new NdnException("lost");
          }
          return true;
        });
  }

  /** Returns what is sent over the wire. */
  private byte[] tap(byte[] stock) throws IOException {
    return tap(stock, 0);
  }

  private byte[] tap(byte[] stock, int inlineBytes) throws IOException {
    ByteArrayOutputStream sent = new ByteArrayOutputStream();
    NamedWrites named =
        new NamedWrites(op -> new Plan.Produce(PREAMBLE, network.publisher(), inlineBytes), null);
    new BytesTap(named, Channels.newChannel(sent)).write(stock);
    return sent.toByteArray();
  }

  private NamedInput input(InputStream waiting, ReadableByteChannel ready, int timeoutMs) {
    return new NamedInput(
        new ControlInput(waiting, ready),
        PublishedSegments.NAMES,
        (op, preamble, records) ->
            new BodyPuller(
                op,
                preamble,
                records,
                (prefix, stream, first) -> source(prefix),
                timeoutMs,
                () -> 0),
        answers);
  }

  private NamedInput input(byte[] wire, Random cuts) {
    InputStream in =
        new ByteArrayInputStream(wire) {
          @Override
          public synchronized int read(byte[] to, int off, int length) {
            return super.read(to, off, Math.min(length, 1 + cuts.nextInt(3000)));
          }
        };
    return input(in, silent(), 300);
  }

  /** A connection on which nothing more comes, but which goes on. */
  private static ReadableByteChannel silent() {
    return new ReadableByteChannel() {
      @Override
      public int read(ByteBuffer to) {
        return 0;
      }

      @Override
      public boolean isOpen() {
        return true;
      }

      @Override
      public void close() {}
    };
  }

  private static byte[] stock(Random random, int packets) throws IOException {
    ByteArrayOutputStream stock = new ByteArrayOutputStream();
    stock.write(StockBytes.writeHeader(3, BlockConstructionStage.PIPELINE_SETUP_CREATE, "client"));
    long offset = 0;
    for (int i = 0; i < packets; i++) {
      if (random.nextInt(5) == 0) {
        stock.write(StockBytes.heartbeat());
      }
      int length =
          switch (random.nextInt(4)) {
            case 0 -> 1 + random.nextInt(StockBytes.SEGMENT);
            case 1 -> 1 + random.nextInt(5 * StockBytes.SEGMENT);
            case 2 -> (1 + random.nextInt(5)) * StockBytes.SEGMENT;
            default -> StockBytes.SEGMENT;
          };
      stock.write(StockBytes.packet(offset, i, false, StockBytes.random(random, length)));
      offset += length;
    }
    stock.write(StockBytes.packet(offset, packets, true, new byte[0]));
    return stock.toByteArray();
  }

  /** Of a small file, or a log that is flushed, there is no segment; a log may be open for days. */
  @Test
  void nothingIsAskedForBeforeARecordNamesIt() throws IOException {
    byte[] header =
        StockBytes.writeHeader(3, BlockConstructionStage.PIPELINE_SETUP_CREATE, "client");
    byte[] small = StockBytes.packet(0, 0, false, new byte[100]);
    byte[] large = StockBytes.packet(0, 1, false, new byte[StockBytes.SEGMENT]);
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    all.write(header);
    all.write(small);
    int flushed = all.size();
    all.write(large);
    byte[] stock = all.toByteArray();
    NamedInput input = input(tap(stock, 1000), new Random(5));
    assertArrayEquals(header, input.readNBytes(header.length));
    assertArrayEquals(small, input.readNBytes(small.length));
    assertEquals(List.of(), network.opened);
    assertArrayEquals(large, input.readNBytes(stock.length - flushed));
    assertEquals(1, network.opened.size());
  }

  @Test
  void stockBytesComeOutHoweverTheyAreRead() throws IOException {
    Random random = new Random(5);
    for (int round = 0; round < 60; round++) {
      network.clear();
      byte[] stock = stock(random, random.nextInt(8));
      byte[] wire = tap(stock);
      try (NamedInput in = input(wire, random)) {
        ByteArrayOutputStream read = new ByteArrayOutputStream();
        byte[] buffer = new byte[1 + random.nextInt(round % 2 == 0 ? 600 : 100_000)];
        int count;
        while ((count = in.read(buffer, 0, buffer.length)) >= 0) {
          assertTrue(count > 0);
          read.write(buffer, 0, count);
        }
        assertArrayEquals(stock, read.toByteArray());
      }
    }
  }

  @Test
  void nothingButWritesByNameIsTaken() throws IOException {
    byte[] preamble = new Preamble("/hadoop/blocks/BP-1/1/v=1", 1, StockBytes.SEGMENT).encode();
    byte[] read = {0, 28, 81, 5, 1, 2, 3, 4, 5};
    byte[] wire = ByteBuffer.allocate(preamble.length + 9).put(preamble).put(read).array();
    try (NamedInput in = input(wire, new Random(3))) {
      assertThrows(IOException.class, in::read);
    }
    try (NamedInput in = input(read, new Random(3))) {
      assertThrows(IOException.class, in::read);
    }
    try (NamedInput in = input(new byte[0], new Random(3))) {
      assertEquals(-1, in.read());
    }
  }

  @Test
  void aFailedStreamIsOpenedAgain() throws IOException {
    byte[] stock = stock(new Random(8), 3);
    byte[] wire = tap(stock);
    failures = 2;
    try (NamedInput in = input(wire, new Random(3))) {
      assertArrayEquals(stock, in.readAllBytes());
    }
    assertTrue(network.opened.size() >= 3, "opened " + network.opened);
  }

  private byte[] onePacket() throws IOException {
    ByteArrayOutputStream stock = new ByteArrayOutputStream();
    stock.write(StockBytes.writeHeader(3, BlockConstructionStage.PIPELINE_SETUP_CREATE, "client"));
    stock.write(
        StockBytes.packet(0, 0, false, StockBytes.random(new Random(4), StockBytes.SEGMENT)));
    return tap(stock.toByteArray());
  }

  @Test
  void aSegmentThatNeverComesTimesOut() throws IOException {
    byte[] wire = onePacket();
    network.clear();
    try (NamedInput in = input(wire, new Random(1))) {
      assertThrows(SocketTimeoutException.class, in::readAllBytes);
    }
  }

  @Test
  void aPullIsGivenUpWhenTheConnectionEnds() throws IOException {
    byte[] wire = onePacket();
    network.clear();
    try (NamedInput in =
        input(
            new ByteArrayInputStream(wire),
            Channels.newChannel(InputStream.nullInputStream()),
            50_000)) {
      IOException e = assertThrows(IOException.class, in::readAllBytes);
      assertTrue(e.getMessage().contains("control connection has ended"), e.getMessage());
    }
  }

  @Test
  void anInterruptEndsAPull() throws IOException {
    byte[] wire = onePacket();
    network.clear();
    Thread reader = Thread.currentThread();
    Thread interrupter =
        new Thread(
            () -> {
              try {
                Thread.sleep(200);
              } catch (InterruptedException e) {
                return;
              }
              reader.interrupt();
            });
    try (NamedInput in = input(new ByteArrayInputStream(wire), silent(), 50_000)) {
      interrupter.start();
      assertThrows(InterruptedIOException.class, in::readAllBytes);
      assertTrue(Thread.interrupted());
    }
  }

  @Test
  void aSegmentOfAnotherPacketIsRefused() throws IOException {
    byte[] wire = onePacket();
    String name = PREAMBLE.name() + "/0";
    for (int at : new int[] {0, 4, 11, 15, 23}) {
      Segment segment = network.get(name);
      byte[] header = segment.header().clone();
      header[at] ^= 1;
      network.put(name, new Segment(header, segment.content()));
      try (NamedInput in = input(wire, new Random(1))) {
        assertThrows(IOException.class, in::readAllBytes);
      }
      network.put(name, segment);
    }
  }

  @Test
  void aStreamThatFailsForGoodIsGivenUp() throws IOException {
    byte[] wire = onePacket();
    failures = 1000;
    try (NamedInput in = input(new ByteArrayInputStream(wire), silent(), 1500)) {
      assertThrows(SocketTimeoutException.class, in::readAllBytes);
    }
    assertTrue(network.opened.size() <= 4, "opened " + network.opened);
    assertEquals(List.of(0L), asked);
  }

  @Test
  void aConnectionClosedBeforeItsHeaderOpensNoPull() throws IOException {
    byte[] wire = onePacket();
    NamedInput in = input(new ByteArrayInputStream(wire), silent(), 1000);
    in.close();
    assertThrows(ClosedChannelException.class, in::readAllBytes);
    assertEquals(List.of(), network.opened);
  }

  @Test
  void aBlockPullAsksNoMoreOnceThePacketsGoByStream() throws IOException {
    Random random = new Random(9);
    ByteArrayOutputStream stock = new ByteArrayOutputStream();
    stock.write(StockBytes.writeHeader(3, BlockConstructionStage.PIPELINE_SETUP_CREATE, "client"));
    int[] lengths = {StockBytes.SEGMENT, 100, StockBytes.SEGMENT, 2 * StockBytes.SEGMENT};
    long offset = 0;
    for (int i = 0; i < lengths.length; i++) {
      stock.write(StockBytes.packet(offset, i, false, StockBytes.random(random, lengths[i])));
      offset += lengths[i];
    }
    byte[] wire = tap(stock.toByteArray());
    String stream = Names.stream(PREAMBLE.name(), PREAMBLE.nonce());
    try (NamedInput in = input(wire, random)) {
      assertArrayEquals(stock.toByteArray(), in.readNBytes(stock.size()));
      assertEquals(List.of(PREAMBLE.name(), stream), network.opened);
      assertEquals(List.of(PREAMBLE.name()), network.closed, "what is not read asks for nothing");
    }
    assertEquals(List.of(PREAMBLE.name(), stream), network.closed);
  }

  @Test
  void aTruncatedConnectionIsAnError() throws IOException {
    Random random = new Random(6);
    byte[] stock = stock(random, 4);
    byte[] wire = tap(stock);
    for (int cut = 1; cut < PREAMBLE.encode().length + 200; cut += 7) {
      try (NamedInput in = input(Arrays.copyOf(wire, cut), random)) {
        assertThrows(EOFException.class, in::readAllBytes);
      }
    }
  }

  @Test
  void anotherBlockThanThePreambleSaysIsRefused() throws IOException {
    byte[] preamble = new Preamble("/hadoop/blocks/other/1/v=1", 1, 512).encode();
    byte[] header =
        StockBytes.writeHeader(3, BlockConstructionStage.PIPELINE_SETUP_CREATE, "client");
    byte[] wire =
        ByteBuffer.allocate(preamble.length + header.length).put(preamble).put(header).array();
    try (NamedInput in = input(wire, new Random(1))) {
      IOException e = assertThrows(IOException.class, in::readAllBytes);
      assertTrue(e.getMessage().contains("trunkline.ndn.root"), e.getMessage());
    }
  }

  @Test
  void hostileBytesEndInAnIoException() throws IOException {
    Random random = new Random(12);
    byte[] wire = tap(stock(random, 3));
    for (int round = 0; round < 3000; round++) {
      byte[] hostile = Arrays.copyOf(wire, random.nextInt(wire.length + 1));
      for (int i = random.nextInt(5); i > 0 && hostile.length > 0; i--) {
        hostile[random.nextInt(hostile.length)] = (byte) random.nextInt();
      }
      try (NamedInput in = input(new ByteArrayInputStream(hostile), silent(), 1)) {
        in.readAllBytes();
      } catch (IOException expected) {
        // what is said of a connection that is wrong
      }
    }
  }
}

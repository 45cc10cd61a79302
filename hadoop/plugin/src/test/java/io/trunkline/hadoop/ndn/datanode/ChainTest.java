package io.trunkline.hadoop.ndn.datanode;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.StockBytes;
import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.ndn.UnverifiedException;
import io.trunkline.hadoop.ndn.wire.AnswerFrame;
import io.trunkline.hadoop.ndn.wire.SegmentCut.Piece;
import io.trunkline.hadoop.ndn.write.NamedWrites;
import io.trunkline.hadoop.ndn.write.Plan;
import io.trunkline.hadoop.ndn.write.Planner;
import io.trunkline.hadoop.ndn.write.WritePlanner;
import io.trunkline.hadoop.tap.BytesTap;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.WritableByteChannel;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.protocol.datatransfer.BlockConstructionStage;
import org.apache.hadoop.security.token.Token;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * A client and three DataNodes, each with its tap, in memory. DataNodes lose the network or find
 * other bytes there; whatever happens, each reads the stock bytes that the client wrote.
 */
@Timeout(120)
class ChainTest {
  private static final int HOPS = 3;

  /** A quarter of it is how long a DataNode waits before it asks. */
  private static final int PULL_TIMEOUT_MS = 6000;

  private static final Planner RELAY =
      new WritePlanner(Settings.from(new Configuration(false)), null, "peer", null);

  private final ExecutorService threads = Executors.newFixedThreadPool(HOPS + 1);
  private final PublishedSegments network = new PublishedSegments();
  private final int[] starvesFrom = new int[HOPS];
  private final boolean[] poisoned = new boolean[HOPS];

  /** Bytes before the packet that ends the block, and who has them all. */
  private volatile int beforeLast;

  private final Semaphore acknowledged = new Semaphore(0);

  @AfterEach
  void stop() {
    threads.shutdownNow();
  }

  /** A connection in one direction, read with and without waiting. */
  private static final class Line extends InputStream {
    private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    private int taken;

    private synchronized int write(ByteBuffer more) {
      int length = more.remaining();
      bytes.write(more.array(), more.arrayOffset() + more.position(), length);
      more.position(more.limit());
      notifyAll();
      return length;
    }

    WritableByteChannel end() {
      return new WritableByteChannel() {
        @Override
        public int write(ByteBuffer more) {
          return Line.this.write(more);
        }

        @Override
        public boolean isOpen() {
          return true;
        }

        @Override
        public void close() {}
      };
    }

    private int take(byte[] to, int off, int length) {
      int count = Math.min(length, bytes.size() - taken);
      System.arraycopy(bytes.toByteArray(), taken, to, off, count);
      taken += count;
      return count;
    }

    @Override
    public int read() {
      throw new UnsupportedOperationException();
    }

    @Override
    public synchronized int read(byte[] to, int off, int length) throws IOException {
      try {
        while (bytes.size() == taken) {
          wait();
        }
      } catch (InterruptedException e) {
        throw new IOException(e);
      }
      return take(to, off, length);
    }

    ReadableByteChannel ready() {
      return new ReadableByteChannel() {
        @Override
        public int read(ByteBuffer to) {
          synchronized (Line.this) {
            int count = take(to.array(), to.arrayOffset() + to.position(), to.remaining());
            to.position(to.position() + count);
            return count;
          }
        }

        @Override
        public boolean isOpen() {
          return true;
        }

        @Override
        public void close() {}
      };
    }
  }

  /** The sending side of one connection, as a tap channel is. */
  private static final class Sender {
    final Line line = new Line();
    private final BytesTap tap;

    Sender(Planner planner) {
      tap = new BytesTap(new NamedWrites(planner, null), line.end());
    }

    void write(byte[] stock, int length) throws IOException {
      tap.write(stock, length);
    }

    void asked(long seqno) throws IOException {
      tap.answered(AnswerFrame.ask(seqno));
    }
  }

  /** What hop finds by name; dark is what it does not get, poisoned what it finds in its place. */
  private boolean brings(int hop, Piece piece) throws UnverifiedException {
    boolean dark = piece.header().offset() >= starvesFrom[hop];
    if (dark && poisoned[hop]) {
      throw new UnverifiedException("another write's");
    }
    return !dark;
  }

  private static byte[] header(int left) {
    return StockBytes.writeHeader(
        HOPS,
        left,
        BlockConstructionStage.PIPELINE_SETUP_CREATE,
        "client",
        new Token<>(),
        128L << 20);
  }

  /** What a DataNode does: reads the stock bytes, and writes them on. Returns its packets. */
  private byte[] dataNode(int hop, Sender upstream, Sender downstream, int length)
      throws IOException {
    NamedInput.Answers answers =
        new NamedInput.Answers() {
          @Override
          public void begin() {}

          @Override
          public void ask(long seqno) throws IOException {
            upstream.asked(seqno);
          }
        };
    ByteArrayOutputStream packets = new ByteArrayOutputStream();
    try (NamedInput in =
        new NamedInput(
            new ControlInput(upstream.line, upstream.line.ready()),
            PublishedSegments.NAMES,
            (op, preamble, records) ->
                new BodyPuller(
                    op,
                    preamble,
                    records,
                    (prefix, stream, first) -> network.source(prefix, piece -> brings(hop, piece)),
                    PULL_TIMEOUT_MS,
                    () -> 0),
            answers)) {
      byte[] header = header(HOPS - hop);
      assertArrayEquals(header, in.readNBytes(header.length));
      if (downstream != null) {
        byte[] on = header(HOPS - hop - 1);
        downstream.write(on, on.length);
      }
      byte[] buffer = new byte[200_000];
      while (packets.size() < length) {
        int count = in.read(buffer, 0, buffer.length);
        assertTrue(count > 0);
        packets.write(buffer, 0, count);
        if (packets.size() == beforeLast) {
          acknowledged.release();
        }
        if (downstream != null) {
          downstream.write(buffer, count);
        }
      }
    }
    return packets.toByteArray();
  }

  private List<byte[]> packets(Random random) throws IOException {
    List<byte[]> packets = new ArrayList<>();
    long offset = 0;
    int count = 2 + random.nextInt(12);
    for (int i = 0; i < count; i++) {
      if (random.nextInt(4) == 0) {
        packets.add(StockBytes.heartbeat());
      }
      int length =
          switch (random.nextInt(3)) {
            case 0 -> 1 + random.nextInt(StockBytes.SEGMENT);
            case 1 -> 2 * StockBytes.SEGMENT;
            default -> StockBytes.SEGMENT;
          };
      packets.add(StockBytes.packet(offset, i, false, StockBytes.random(random, length)));
      offset += length;
    }
    packets.add(StockBytes.packet(offset, count, true, new byte[0]));
    return packets;
  }

  private void run(Random random) throws Exception {
    network.clear();
    Sender client =
        new Sender(op -> new Plan.Produce(PublishedSegments.PREAMBLE, network.publisher(), 0));
    Sender second = new Sender(RELAY);
    Sender third = new Sender(RELAY);
    List<byte[]> packets = packets(random);
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    for (byte[] packet : packets) {
      all.write(packet);
    }
    int length = all.size();
    beforeLast = length - packets.get(packets.size() - 1).length;
    List<Future<byte[]>> ends = new ArrayList<>();
    ends.add(threads.submit(() -> dataNode(0, client, second, length)));
    ends.add(threads.submit(() -> dataNode(1, second, third, length)));
    ends.add(threads.submit(() -> dataNode(2, third, null, length)));
    byte[] header = header(HOPS);
    client.write(header, header.length);
    for (byte[] packet : packets) {
      if (packet == packets.get(packets.size() - 1)) {
        // A client sends it when all others are acknowledged by all.
        assertTrue(acknowledged.tryAcquire(HOPS, 60, TimeUnit.SECONDS), "all but the last");
      }
      client.write(packet, packet.length);
      if (random.nextInt(3) == 0) {
        TimeUnit.MILLISECONDS.sleep(random.nextInt(20));
      }
    }
    for (Future<byte[]> end : ends) {
      assertArrayEquals(all.toByteArray(), end.get(60, TimeUnit.SECONDS));
    }
    assertEquals(0, ReadAhead.inAll(), "what was read ahead has been given back");
  }

  /** Whoever gets nothing by name, from some byte on, and whoever gets another write's segments. */
  private void lose(Random random, int hops, boolean poison) {
    Arrays.fill(starvesFrom, Integer.MAX_VALUE);
    for (int hop = 0; hop < HOPS; hop++) {
      if ((hops >> hop & 1) != 0) {
        starvesFrom[hop] = random.nextInt(4 * StockBytes.SEGMENT);
        poisoned[hop] = poison;
      }
    }
  }

  @Test
  void whoeverFindsOtherBytesGetsTheBodiesOnTheConnection() throws Exception {
    Random random = new Random(31);
    int asked = 0;
    for (int round = 0; round < 40; round++) {
      lose(random, round % 8, true);
      run(random);
      asked += network.starved();
    }
    assertTrue(asked > 20, "asked " + asked);
  }

  @Test
  void whoeverLosesTheNetworkGetsTheBodiesOnTheConnection() throws Exception {
    Random random = new Random(32);
    int asked = 0;
    for (int hops : new int[] {4, 1, 6, 7}) {
      lose(random, hops, false);
      run(random);
      asked += network.starved();
    }
    assertTrue(asked > 0, "asked " + asked);
  }
}

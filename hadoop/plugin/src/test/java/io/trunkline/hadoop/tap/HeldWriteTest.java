package io.trunkline.hadoop.tap;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.trunkline.hadoop.StockBytes;
import io.trunkline.hadoop.wire.AckReader;
import io.trunkline.hadoop.wire.PacketHead;
import io.trunkline.hadoop.wire.WriteOp;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.hadoop.hdfs.protocol.datatransfer.BlockConstructionStage;
import org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.Status;
import org.apache.hadoop.net.SocketInputStream;
import org.apache.hadoop.net.SocketOutputStream;
import org.apache.hadoop.security.token.Token;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * What a network controller needs that is to set up paths for a pipeline: each hop reported before
 * its header leaves, and the first data held until the paths are there. Stock bytes all pass as
 * they are, on a real connection.
 */
@Timeout(60)
class HeldWriteTest {
  private static final long NEVER_MS = TimeUnit.HOURS.toMillis(1);

  /** One hop of a pipeline. */
  private record Hop(
      String pool,
      long block,
      long genstamp,
      int position,
      InetSocketAddress from,
      InetSocketAddress to) {}

  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final Random random = new Random(8);
  private ServerSocket server;
  private SocketChannel real;
  private Socket far;

  @BeforeEach
  void connect() throws IOException {
    server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
    real = SocketChannel.open(server.getLocalSocketAddress());
    far = server.accept();
  }

  @AfterEach
  void close() throws IOException {
    threads.shutdownNow();
    real.close();
    far.close();
    server.close();
  }

  /** Reports the hop, and holds the first data until it is confirmed, for a while. */
  private final class Holding implements TapListener, HeadWatch {
    final List<Hop> hops = new ArrayList<>();
    final List<Long> seqnos = new ArrayList<>();
    final List<Long> acknowledged = new ArrayList<>();
    final CompletableFuture<Boolean> confirmed = new CompletableFuture<>();
    final CompletableFuture<Void> holds = new CompletableFuture<>();
    private final AckReader acks = new AckReader();
    private final long limitMs;
    volatile Boolean outcome;

    Holding(long limitMs) {
      this.limitMs = limitMs;
    }

    @Override
    public WriteHandler write(WriteOp op, TapConnection connection, TapOutput out)
        throws IOException {
      assertEquals(0, far.getInputStream().available(), "the header has not left");
      hops.add(
          new Hop(
              op.pool(),
              op.block(),
              op.genstamp(),
              op.position(),
              connection.local(),
              connection.remote()));
      return this;
    }

    @Override
    public void other(TapConnection connection) {
      throw new AssertionError("a write");
    }

    @Override
    public boolean head(PacketHead head) throws IOException {
      seqnos.add(head.seqno());
      if (head.dataLength() == 0) {
        return true;
      }
      holds.complete(null);
      try {
        outcome = confirmed.get(limitMs, TimeUnit.MILLISECONDS);
      } catch (TimeoutException e) {
        outcome = false;
      } catch (ExecutionException e) {
        throw new IOException(e);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
        throw new InterruptedIOException("interrupted before the first data");
      }
      return false;
    }

    @Override
    public int answered(ByteBuffer in, int from, int to) {
      long seqno = acks.accept(in.duplicate().position(from).limit(to));
      if (seqno != AckReader.NONE) {
        acknowledged.add(seqno);
      }
      return to - from;
    }

    @Override
    public void close() {
      confirmed.complete(false);
    }
  }

  private static byte[] header(int left) {
    return StockBytes.writeHeader(
        3, left, BlockConstructionStage.PIPELINE_SETUP_CREATE, "client", new Token<>(), 128L << 20);
  }

  private List<byte[]> packets() {
    int length = StockBytes.SEGMENT;
    List<byte[]> packets = new ArrayList<>();
    for (int seqno = 0; seqno < 40; seqno++) {
      byte[] data = StockBytes.random(random, length);
      packets.add(StockBytes.packet((long) seqno * length, seqno, false, data));
    }
    packets.add(StockBytes.packet(40L * length, 40, true, new byte[0]));
    return packets;
  }

  private static byte[] joined(List<byte[]> packets) throws IOException {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    for (byte[] packet : packets) {
      all.write(packet);
    }
    return all.toByteArray();
  }

  /** Writes as stock code does. */
  private Future<Void> write(TapChannel channel, byte[] header, List<byte[]> packets) {
    return threads.submit(
        () -> {
          SocketOutputStream out = new SocketOutputStream(channel, 20_000);
          out.write(header);
          out.write(StockBytes.heartbeat());
          for (byte[] packet : packets) {
            out.write(packet);
          }
          return null;
        });
  }

  /** What may leave before the first data, and nothing else. */
  private void assertHeld(Holding listener, byte[] header) throws Exception {
    byte[] heartbeat = StockBytes.heartbeat();
    assertArrayEquals(header, far.getInputStream().readNBytes(header.length));
    assertArrayEquals(heartbeat, far.getInputStream().readNBytes(heartbeat.length));
    listener.holds.get(20, TimeUnit.SECONDS);
    assertEquals(0, far.getInputStream().available(), "the first data is held");
  }

  @Test
  void theHopIsReportedAndTheFirstDataWaitsForItsConfirmation() throws Exception {
    for (int left = 3; left > 0; left--) {
      byte[] header = header(left);
      List<byte[]> packets = packets();
      Holding listener = new Holding(NEVER_MS);
      try (TapChannel channel = new TapChannel(null, real, listener)) {
        Future<Void> writer = write(channel, header, packets);
        assertHeld(listener, header);
        assertFalse(writer.isDone());
        Hop hop =
            new Hop(
                StockBytes.POOL,
                StockBytes.BLOCK,
                StockBytes.GENSTAMP,
                3 - left,
                (InetSocketAddress) far.getRemoteSocketAddress(),
                (InetSocketAddress) far.getLocalSocketAddress());
        assertEquals(List.of(hop), listener.hops);
        listener.confirmed.complete(true);
        byte[] all = joined(packets);
        assertArrayEquals(all, far.getInputStream().readNBytes(all.length));
        writer.get(20, TimeUnit.SECONDS);
        assertEquals(true, listener.outcome);
        assertEquals(List.of(-1L, 0L), listener.seqnos, "all that follows passes unseen");
        answersComeBack(channel, listener);
      }
      close(left > 1);
    }
  }

  private void close(boolean again) throws IOException {
    far.close();
    server.close();
    if (again) {
      connect();
    }
  }

  private void answersComeBack(TapChannel channel, Holding listener) throws IOException {
    ByteArrayOutputStream answers = new ByteArrayOutputStream();
    answers.write(StockBytes.writeAnswer());
    answers.write(StockBytes.ack(0, Status.SUCCESS, Status.SUCCESS));
    far.getOutputStream().write(answers.toByteArray());
    byte[] read = new byte[answers.size()];
    new DataInputStream(new SocketInputStream(channel, 20_000)).readFully(read);
    assertArrayEquals(answers.toByteArray(), read);
    assertEquals(List.of(0L), listener.acknowledged);
  }

  @Test
  void withoutAConfirmationTheDataGoesAfterAWhile() throws Exception {
    byte[] header = header(3);
    List<byte[]> packets = packets();
    Holding listener = new Holding(1);
    try (TapChannel channel = new TapChannel(null, real, listener)) {
      Future<Void> writer = write(channel, header, packets);
      int before = header.length + StockBytes.heartbeat().length;
      far.getInputStream().skipNBytes(before);
      byte[] all = joined(packets);
      assertArrayEquals(all, far.getInputStream().readNBytes(all.length));
      writer.get(20, TimeUnit.SECONDS);
      assertEquals(false, listener.outcome);
    }
  }

  @Test
  void aClosedConnectionEndsTheWait() throws Exception {
    byte[] header = header(3);
    Holding listener = new Holding(NEVER_MS);
    TapChannel channel = new TapChannel(null, real, listener);
    Future<Void> writer = write(channel, header, packets());
    assertHeld(listener, header);
    channel.close();
    ExecutionException failure =
        assertThrows(ExecutionException.class, () -> writer.get(20, TimeUnit.SECONDS));
    assertInstanceOf(IOException.class, failure.getCause());
    assertEquals(-1, far.getInputStream().read(), "nothing of the data has left");
  }
}

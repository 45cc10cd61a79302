package io.trunkline.hadoop.ucx;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.conf.Setting;
import io.trunkline.hadoop.conf.UcxSettings;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.ConnectException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.io.IOUtils;
import org.apache.hadoop.net.SocketInputStream;
import org.apache.hadoop.net.SocketOutputStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Streams within one JVM: bounds, ends, time-outs, and what stock Hadoop does with channels. */
@Timeout(60)
class UcxStreamsTest {
  private static final int LIMIT_MS = 20_000;

  @TempDir Path directory;

  private UcxNode node;
  private UcxListener listener;
  private Set<Thread> threadsBefore;

  @BeforeEach
  void need() {
    UcxTests.needUcx();
    threadsBefore = UcxTests.threads();
  }

  private void open(UcxSettings.Builder settings) throws IOException {
    node = UcxNode.open(settings.tls("posix,cma,tcp").build());
    listener = node.listen(UcxTests.ANY, 16);
  }

  @AfterEach
  void close() {
    if (node != null) {
      node.close();
      node.close();
      assertEquals(0, node.metrics().registeredBytes());
      assertTrue(threadsBefore.containsAll(UcxTests.threads()));
    }
  }

  private record Pair(UcxChannel client, UcxChannel server) {}

  private Pair pair() throws IOException {
    UcxChannel client = node.connect(listener.address(), LIMIT_MS);
    return new Pair(client, listener.accept(LIMIT_MS));
  }

  private static byte[] bytes(int count, int seed) {
    byte[] bytes = new byte[count];
    new Random(seed).nextBytes(bytes);
    return bytes;
  }

  private static CompletableFuture<Void> write(UcxChannel to, byte[] bytes) {
    return CompletableFuture.runAsync(
        () -> {
          try {
            to.write(bytes, 0, bytes.length, LIMIT_MS);
            to.shutdownOutput();
          } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
          }
        },
        task -> new Thread(task).start());
  }

  private static byte[] read(UcxChannel from) throws IOException {
    java.io.ByteArrayOutputStream all = new java.io.ByteArrayOutputStream();
    byte[] block = new byte[50_000];
    for (int count; (count = from.read(block, 0, block.length, LIMIT_MS)) >= 0; ) {
      all.write(block, 0, count);
    }
    return all.toByteArray();
  }

  /** Whoever connects and stays would hold an endpoint of the DataNode for ever. */
  @Test
  void anAcceptedEndpointWithoutStreamsEndsThoughItsConnectorStays() throws Exception {
    open(UcxSettings.builder().set(Setting.UCX_IDLE_MS, 100).set(Setting.UCX_CONNECT_MS, 1000));
    try (UcxNode connector =
        UcxNode.open(
            UcxSettings.builder().tls("posix,cma,tcp").set(Setting.UCX_WORKERS, 1).build())) {
      for (int i = 0; i < 2; i++) {
        try (UcxChannel client = connector.connect(listener.address(), LIMIT_MS);
            UcxChannel server = listener.accept(LIMIT_MS)) {
          CompletableFuture<Void> written = write(client, bytes(100_000, i));
          assertArrayEquals(bytes(100_000, i), read(server));
          written.get(20, TimeUnit.SECONDS);
        }
        UcxTests.eventually("no endpoint", () -> node.metrics().endpointsOpen() == 0);
        UcxTests.eventually("nor at its peer", () -> connector.metrics().endpointsOpen() == 0);
      }
      assertEquals(2, node.metrics().endpointsAccepted());
      assertEquals(0, node.metrics().endpointsFailed());
      assertEquals(0, connector.metrics().endpointsFailed());
    }
  }

  @Test
  void bothWaysAndHalfClosed() throws Exception {
    open(UcxSettings.builder());
    Pair pair = pair();
    byte[] there = bytes(5_000_001, 1);
    CompletableFuture<Void> written = write(pair.client(), there);
    assertArrayEquals(there, read(pair.server()));
    written.get(20, TimeUnit.SECONDS);
    byte[] back = bytes(3_000_003, 2);
    written = write(pair.server(), back);
    assertArrayEquals(back, read(pair.client()));
    written.get(20, TimeUnit.SECONDS);
    pair.client().close();
    pair.server().close();
    UcxTests.eventually("streams are gone", () -> node.metrics().streamsOpen() == 0);
  }

  @Test
  void aFileGoesOutAsItIs() throws Exception {
    open(UcxSettings.builder());
    Pair pair = pair();
    byte[] content = bytes(2_000_000, 3);
    Path file = Files.write(directory.resolve("file"), content);
    CompletableFuture<byte[]> got =
        CompletableFuture.supplyAsync(
            () -> {
              try {
                return read(pair.server());
              } catch (IOException e) {
                throw new java.io.UncheckedIOException(e);
              }
            });
    try (FileChannel from = FileChannel.open(file)) {
      pair.client().transferFrom(from, 100, content.length - 100, LIMIT_MS);
      assertThrows(
          java.io.EOFException.class,
          () -> pair.client().transferFrom(from, content.length - 10, 20, LIMIT_MS));
    }
    pair.client().shutdownOutput();
    byte[] bytes = got.get(20, TimeUnit.SECONDS);
    ByteBuffer expected = ByteBuffer.wrap(content, 100, content.length - 100);
    assertEquals(-1, ByteBuffer.wrap(bytes, 0, content.length - 100).mismatch(expected));
  }

  /** Whatever the sizes of reads, and though some of them run into their time-outs. */
  @Test
  void directBuffersGetWhatWasWritten() throws Exception {
    open(UcxSettings.builder());
    Pair pair = pair();
    byte[] content = bytes(30_000_001, 5);
    CompletableFuture<Void> written = write(pair.client(), content);
    ByteBuffer got = ByteBuffer.allocate(content.length);
    Random random = new Random(6);
    ByteBuffer[] blocks = {
      ByteBuffer.allocateDirect(1 << 20), ByteBuffer.allocateDirect(300_000), ByteBuffer.allocate(9)
    };
    for (int count = 0; count >= 0; ) {
      ByteBuffer block = blocks[random.nextInt(blocks.length)];
      block.clear().position(random.nextInt(block.capacity()));
      ByteBuffer read = block.duplicate();
      try {
        count = pair.server().read(block, random.nextBoolean() ? LIMIT_MS : 1);
      } catch (SocketTimeoutException e) {
        assertEquals(read.position(), block.position());
        continue;
      }
      got.put(read.limit(block.position()));
    }
    written.get(20, TimeUnit.SECONDS);
    assertArrayEquals(content, got.array());
  }

  @Test
  void readersOfOneStreamDoNotMixTheirMemory() throws Exception {
    open(UcxSettings.builder());
    Pair pair = pair();
    int words = 2_000_000;
    ByteBuffer content = ByteBuffer.allocate(words * 8);
    for (long i = 0; i < words; i++) {
      content.putLong(i);
    }
    List<CompletableFuture<Long>> sums = new ArrayList<>();
    for (int i = 0; i < 2; i++) {
      sums.add(CompletableFuture.supplyAsync(() -> sumOfBytes(pair.server())));
    }
    CompletableFuture<Void> written = write(pair.client(), content.array());
    long sum = 0;
    for (CompletableFuture<Long> each : sums) {
      sum += each.get(30, TimeUnit.SECONDS);
    }
    written.get(20, TimeUnit.SECONDS);
    long expected = 0;
    for (byte b : content.array()) {
      expected += b & 0xFF;
    }
    assertEquals(expected, sum);
  }

  private static long sumOfBytes(UcxChannel from) {
    ByteBuffer block = ByteBuffer.allocateDirect(600_000);
    long sum = 0;
    try {
      while (from.read(block.clear(), LIMIT_MS) >= 0) {
        block.flip();
        while (block.hasRemaining()) {
          sum += block.get() & 0xFF;
        }
      }
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
    return sum;
  }

  @Test
  void whatWasReadInOrderHasBeenCarried() throws Exception {
    open(UcxSettings.builder());
    Pair pair = pair();
    List<Service> told = new ArrayList<>();
    pair.client().onClose((service, why) -> told.add(service));
    pair.server().onClose((service, why) -> told.add(service));
    CompletableFuture<Void> writer = write(pair.server(), bytes(100_000, 6));
    assertArrayEquals(bytes(100_000, 6), read(pair.client()));
    writer.get(20, TimeUnit.SECONDS);
    pair.client().close();
    pair.client().close();
    assertEquals(List.of(Service.CARRIED), told);
    pair.server().close();
    assertEquals(List.of(Service.CARRIED, Service.UNKNOWN), told, "it has read nothing");
  }

  /** A client that ends without closing its streams, as many do, is no failure. */
  @Test
  void anEndedPeerIsNotAFailedOne() throws Exception {
    open(UcxSettings.builder());
    UcxChannel server;
    List<Service> told = new ArrayList<>();
    try (UcxNode other = UcxNode.open(UcxSettings.builder().tls("posix,cma,tcp").build())) {
      UcxChannel client = other.connect(listener.address(), LIMIT_MS);
      server = listener.accept(LIMIT_MS);
      client.write(ByteBuffer.allocate(10), LIMIT_MS);
      assertEquals(10, server.read(ByteBuffer.allocate(10), LIMIT_MS));
    }
    IOException ended =
        assertThrows(IOException.class, () -> server.read(ByteBuffer.allocate(1), LIMIT_MS));
    assertTrue(ended.getMessage().contains("has ended"), ended.getMessage());
    server.onClose((service, why) -> told.add(service));
    server.close();
    assertEquals(List.of(Service.UNKNOWN), told);
    UcxTests.eventually("its endpoint is gone", () -> node.metrics().endpointsOpen() == 0);
    assertEquals(0, node.metrics().endpointsFailed());
  }

  @Test
  void aSlowReaderStopsItsWriterWithinTheWindow() throws Exception {
    open(UcxSettings.builder().set(Setting.UCX_WINDOW_BYTES, 1 << 20));
    Pair pair = pair();
    pair.client().configureBlocking(false);
    ByteBuffer block = ByteBuffer.allocateDirect(100_000);
    long taken = 0;
    long quietSince = System.nanoTime();
    while (System.nanoTime() - quietSince < 300_000_000L) {
      int count = pair.client().write(block.clear());
      taken += count;
      quietSince = count > 0 ? System.nanoTime() : quietSince;
    }
    assertTrue(taken <= (1 << 20), taken + " bytes taken");
    assertThrows(SocketTimeoutException.class, () -> pair.client().write(block.clear(), 100));
    pair.client().close();
    long got = 0;
    for (int count; (count = pair.server().read(block.clear(), LIMIT_MS)) >= 0; ) {
      got += count;
    }
    assertTrue(got >= taken, got + " of " + taken);
  }

  @Test
  void aShortWaitSparesANonBlockingReaderItsSelector() throws Exception {
    open(UcxSettings.builder());
    Pair pair = pair();
    UcxChannel reader = pair.server();
    reader.configureBlocking(false);
    ByteBuffer one = ByteBuffer.allocate(1);
    assertEquals(0, reader.read(one), "nothing has been sent");
    reader.setShortWait(TimeUnit.MILLISECONDS.toNanos(1));
    assertEquals(0, reader.read(one), "nor now");
    reader.setShortWait(TimeUnit.MILLISECONDS.toNanos(LIMIT_MS));
    CompletableFuture<Void> writer =
        CompletableFuture.runAsync(
            () -> {
              try {
                pair.client().write(ByteBuffer.wrap(new byte[] {42}), LIMIT_MS);
              } catch (IOException e) {
                throw new java.io.UncheckedIOException(e);
              }
            });
    assertEquals(1, reader.read(one), "a single call");
    assertEquals(42, one.get(0));
    writer.get(10, TimeUnit.SECONDS);
    pair.client().close();
    assertEquals(-1, reader.read(one.clear()));
  }

  /** HDFS finds a stopped peer by its readers' time-outs, though its writers wait far longer. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aWriterDoesNotWaitOnceItsReaderHasGivenUp(boolean stockStreams) throws Exception {
    open(UcxSettings.builder().set(Setting.UCX_WINDOW_BYTES, 1 << 20));
    Pair pair = pair();
    if (stockStreams) {
      pair.client().configureBlocking(false);
    }
    InputStream in =
        stockStreams
            ? new SocketInputStream(pair.client(), 300)
            : pair.client().socket().getInputStream();
    pair.client().socket().setSoTimeout(300);
    CompletableFuture<Void> writer = write(pair.client(), bytes(4 << 20, 5));
    assertThrows(SocketTimeoutException.class, () -> in.read(new byte[10]));
    ExecutionException e =
        assertThrows(ExecutionException.class, () -> writer.get(10, TimeUnit.SECONDS));
    assertTrue(e.getMessage().contains("Connection reset"), e.getMessage());
    pair.server().write(ByteBuffer.allocate(10), LIMIT_MS);
    assertEquals(10, in.read(new byte[10]));
    assertThrows(
        SocketTimeoutException.class,
        () -> pair.client().write(ByteBuffer.allocateDirect(2 << 20), 100),
        "a peer that answers again is waited for again");
  }

  @Test
  void anEmptyPoolMakesStreamsSlowNotStuck() throws Exception {
    int message = 64 << 10;
    long bound = 4 << 20;
    open(
        UcxSettings.builder()
            .set(Setting.UCX_WORKERS, 1)
            .set(Setting.UCX_MESSAGE_BYTES, message)
            .set(Setting.UCX_RENDEZVOUS_BYTES, message)
            .set(Setting.UCX_WINDOW_BYTES, 1 << 20)
            .set(Setting.UCX_POOL_BYTES, bound));
    List<Pair> pairs = new ArrayList<>();
    List<CompletableFuture<Void>> writers = new ArrayList<>();
    byte[] content = bytes(2 << 20, 4);
    for (int i = 0; i < 12; i++) {
      pairs.add(pair());
      writers.add(write(pairs.get(i).client(), content));
    }
    UcxTests.eventually("the pool is empty once", () -> node.metrics().poolWaits() > 0);
    assertTrue(node.metrics().registeredBytes() <= bound);
    for (int i = 0; i < pairs.size(); i++) {
      assertArrayEquals(content, read(pairs.get(i).server()), "stream " + i);
      assertTrue(node.metrics().registeredBytes() <= bound);
      writers.get(i).get(20, TimeUnit.SECONDS);
    }
    UcxTests.eventually("all is back", () -> node.metrics().unpooledBytes() == 0);
  }

  @ParameterizedTest
  @EnumSource(UcxSettings.Polling.class)
  void aThousandStreamsLeaveNothing(UcxSettings.Polling polling) throws Exception {
    open(UcxSettings.builder().set(Setting.UCX_WORKERS, 1).polling(polling));
    for (int i = 0; i < 1000; i++) {
      Pair pair = pair();
      pair.client().write(ByteBuffer.wrap(bytes(1000 + 100 * i, i)), LIMIT_MS);
      pair.client().close();
      assertEquals(1000 + 100 * i, read(pair.server()).length);
      pair.server().close();
    }
    assertTrue(node.metrics().endpointsConnected() <= 2);
    UcxTests.eventually("streams are gone", () -> node.metrics().streamsOpen() == 0);
    UcxTests.eventually("buffers are back", () -> node.metrics().pooledBytesInUse() == 0);
    node.trimPool();
    assertEquals(0, node.metrics().registeredBytes());
  }

  @Test
  void refusalsSayWhy() throws Exception {
    open(UcxSettings.builder());
    for (int i = 0; i < 16; i++) {
      node.connect(listener.address(), LIMIT_MS);
    }
    ConnectException e =
        assertThrows(ConnectException.class, () -> node.connect(listener.address(), LIMIT_MS));
    assertTrue(e.getMessage().contains("not accepted its earlier streams"), e.getMessage());
    java.net.InetSocketAddress gone = listener.address();
    listener.close();
    assertThrows(IOException.class, () -> node.connect(gone, LIMIT_MS));
  }

  @Test
  void whatHasComeIsReadThoughItsNodeIsClosed() throws Exception {
    open(UcxSettings.builder());
    Pair pair = pair();
    byte[] sent = bytes(1_000_000, 11);
    assertEquals(sent.length, pair.client().write(ByteBuffer.wrap(sent)));
    ByteBuffer got = ByteBuffer.allocate(sent.length);
    got.limit(sent.length - 10); // the rest of the last message, then, is here too
    while (got.hasRemaining()) {
      pair.server().read(got);
    }
    node.close();
    got.limit(sent.length);
    while (got.hasRemaining()) {
      pair.server().read(got);
    }
    assertArrayEquals(sent, got.array());
    assertThrows(IOException.class, () -> pair.server().read(ByteBuffer.allocate(1)));
  }

  @Test
  void closingWakesAReader() throws Exception {
    open(UcxSettings.builder());
    Pair pair = pair();
    CompletableFuture<Integer> reader =
        CompletableFuture.supplyAsync(
            () -> {
              try {
                return pair.server().read(ByteBuffer.allocate(1));
              } catch (IOException e) {
                throw new java.io.UncheckedIOException(e);
              }
            });
    Thread.sleep(100);
    pair.server().close();
    ExecutionException e =
        assertThrows(ExecutionException.class, () -> reader.get(10, TimeUnit.SECONDS));
    assertTrue(e.getCause().getCause() instanceof AsynchronousCloseException, "" + e.getCause());
    assertThrows(
        IOException.class,
        () -> {
          for (; ; ) {
            pair.client().write(ByteBuffer.allocate(1000), LIMIT_MS);
          }
        });
  }

  @Test
  void listenersAreMadeWhileConnectionsAreLost() throws Exception {
    open(UcxSettings.builder());
    for (int i = 0; i < 10; i++) {
      UcxNode peer = UcxNode.open(UcxSettings.builder().tls("posix,cma,tcp").build());
      UcxListener there = peer.listen(UcxTests.ANY, 16);
      node.connect(there.address(), LIMIT_MS);
      CompletableFuture<Void> closing = CompletableFuture.runAsync(peer::close);
      while (!closing.isDone() || node.metrics().endpointsOpen() > 0) {
        node.listen(UcxTests.ANY, 1).close();
      }
      closing.get();
    }
  }

  @Test
  void stockHadoopStreamsWork() throws Exception {
    open(UcxSettings.builder());
    Pair pair = pair();
    byte[] content = bytes(6_000_000, 7);
    CompletableFuture<Void> writer =
        CompletableFuture.runAsync(
            () -> {
              try (OutputStream out = new SocketOutputStream(pair.client(), LIMIT_MS)) {
                out.write(content);
              } catch (IOException e) {
                throw new java.io.UncheckedIOException(e);
              }
            });
    InputStream in = new SocketInputStream(pair.server(), LIMIT_MS);
    byte[] got = new byte[content.length];
    IOUtils.readFully(in, got, 0, got.length);
    assertArrayEquals(content, got);
    assertEquals(-1, in.read());
    writer.get(20, TimeUnit.SECONDS);
    Pair silent = pair();
    InputStream waits = new SocketInputStream(silent.server(), 200);
    assertThrows(SocketTimeoutException.class, () -> waits.read(new byte[10]));
  }
}

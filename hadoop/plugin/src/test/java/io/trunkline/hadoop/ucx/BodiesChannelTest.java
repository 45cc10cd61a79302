package io.trunkline.hadoop.ucx;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.conf.Setting;
import io.trunkline.hadoop.conf.UcxSettings;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.FileChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
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
import org.junit.jupiter.params.provider.ValueSource;

/** Connections whose small messages go by TCP, within one JVM, over real UCX. */
@Timeout(60)
class BodiesChannelTest {
  private static final int LIMIT_MS = 20_000;
  private static final int SMALL = 64 << 10;
  private static final InetAddress HERE = InetAddress.getLoopbackAddress();

  @TempDir Path directory;

  private UcxNode node;
  private BodiesListener listener;
  private Set<Thread> threadsBefore;

  @BeforeEach
  void open() throws IOException {
    UcxTests.needUcx();
    threadsBefore = UcxTests.threads();
    node =
        UcxNode.open(
            UcxSettings.builder()
                .tls("posix,cma,tcp")
                .set(Setting.UCX_WINDOW_BYTES, 1 << 20)
                .build());
    listener = listen(10_000);
  }

  private BodiesListener listen(int mostMs) throws IOException {
    return BodiesListener.open(node, UcxTests.ANY, SMALL, TimeUnit.MILLISECONDS.toNanos(mostMs));
  }

  @AfterEach
  void close() throws IOException {
    if (node != null) {
      listener.close();
      listener.close();
      node.close();
      assertEquals(0, node.metrics().registeredBytes());
      assertTrue(threadsBefore.containsAll(UcxTests.threads()));
    }
  }

  private record Pair(BodiesChannel client, BodiesChannel server) {}

  private UcxChannel stream() throws IOException {
    return node.connect(new InetSocketAddress(HERE, listener.ucxPort()), LIMIT_MS);
  }

  private SocketChannel connection() throws IOException {
    return SocketChannel.open(new InetSocketAddress(HERE, listener.tcpPort()));
  }

  private Pair pair() throws IOException {
    UcxChannel stream = stream();
    BodiesChannel client = BodiesChannel.connected(connection(), stream, SMALL);
    return new Pair(client, listener.accept());
  }

  private static byte[] bytes(int count, int seed) {
    byte[] bytes = new byte[count];
    new Random(seed).nextBytes(bytes);
    return bytes;
  }

  @FunctionalInterface
  private interface Task<T> {
    T run() throws Exception;
  }

  private static <T> CompletableFuture<T> start(Task<T> task) {
    CompletableFuture<T> done = new CompletableFuture<>();
    Thread thread =
        new Thread(
            () -> {
              try {
                done.complete(task.run());
              } catch (Throwable e) {
                done.completeExceptionally(e);
              }
            });
    thread.setDaemon(true);
    thread.start();
    return done;
  }

  private static <T> Throwable failure(CompletableFuture<T> task) {
    return assertThrows(ExecutionException.class, () -> task.get(20, TimeUnit.SECONDS)).getCause();
  }

  /** In messages of all sizes. */
  private static CompletableFuture<Void> write(BodiesChannel to, byte[] bytes, int seed) {
    return start(
        () -> {
          Random random = new Random(seed);
          for (int at = 0; at < bytes.length; ) {
            int most = random.nextInt(3) == 0 ? 700_000 : random.nextBoolean() ? SMALL : 500;
            int count = Math.min(bytes.length - at, 1 + random.nextInt(most));
            to.write(bytes, at, count, LIMIT_MS);
            at += count;
          }
          to.shutdownOutput();
          return null;
        });
  }

  private static byte[] read(BodiesChannel from, int seed) throws IOException {
    Random random = new Random(seed);
    java.io.ByteArrayOutputStream all = new java.io.ByteArrayOutputStream();
    byte[] block = new byte[300_000];
    for (int count = 0; count >= 0; ) {
      all.write(block, 0, count);
      count = from.read(block, 0, 1 + random.nextInt(block.length), LIMIT_MS);
    }
    return all.toByteArray();
  }

  @Test
  void bothWaysAtOnceInMessagesOfAllSizes() throws Exception {
    for (int seed = 0; seed < 5; seed++) {
      Pair pair = pair();
      byte[] there = bytes(5_000_001, seed);
      byte[] back = bytes(3_000_003, seed + 100);
      CompletableFuture<Void> first = write(pair.client(), there, seed);
      CompletableFuture<Void> second = write(pair.server(), back, seed);
      CompletableFuture<byte[]> got = start(() -> read(pair.client(), 7));
      assertArrayEquals(there, read(pair.server(), seed));
      assertArrayEquals(back, got.get(20, TimeUnit.SECONDS));
      first.get(20, TimeUnit.SECONDS);
      second.get(20, TimeUnit.SECONDS);
      assertThrows(ClosedChannelException.class, () -> pair.client().write(ByteBuffer.allocate(1)));
      pair.client().close();
      pair.server().close();
    }
    assertEquals(0, listener.waiting());
    UcxTests.eventually("streams are gone", () -> node.metrics().streamsOpen() == 0);
  }

  @Test
  void smallMessagesGoByTcpAlone() throws Exception {
    Pair pair = pair();
    for (int i = 1; i < SMALL; i += 1111) {
      pair.client().write(ByteBuffer.wrap(bytes(i, i)));
      ByteBuffer got = ByteBuffer.allocate(i);
      while (got.hasRemaining()) {
        pair.server().read(got);
      }
      assertArrayEquals(bytes(i, i), got.array());
    }
    assertEquals(0, node.metrics().bytesSent());
    pair.client().write(ByteBuffer.allocate(SMALL));
    assertEquals(SMALL, node.metrics().bytesSent());
  }

  @ParameterizedTest
  @ValueSource(longs = {0, 5_000_000})
  void stockHadoopStreamsWork(long shortWait) throws Exception {
    Pair pair = pair();
    pair.client().setShortWait(shortWait);
    pair.server().setShortWait(shortWait);
    byte[] content = bytes(6_000_000, 7);
    CompletableFuture<Void> writer =
        start(
            () -> {
              OutputStream out = new SocketOutputStream(pair.client(), LIMIT_MS);
              Random random = new Random(8);
              for (int at = 0; at < content.length; ) {
                int most = random.nextBoolean() ? 1000 : 600_000;
                int count = Math.min(content.length - at, 1 + random.nextInt(most));
                out.write(content, at, count);
                at += count;
              }
              InputStream answer = new SocketInputStream(pair.client(), LIMIT_MS);
              assertEquals(42, answer.read());
              out.close();
              return null;
            });
    InputStream in = new SocketInputStream(pair.server(), LIMIT_MS);
    byte[] got = new byte[content.length];
    IOUtils.readFully(in, got, 0, got.length);
    assertArrayEquals(content, got);
    new SocketOutputStream(pair.server(), LIMIT_MS).write(42);
    assertEquals(-1, in.read());
    writer.get(20, TimeUnit.SECONDS);
    Pair silent = pair();
    InputStream waits = new SocketInputStream(silent.server(), 200);
    assertThrows(SocketTimeoutException.class, () -> waits.read(new byte[10]));
    OutputStream stuck = new SocketOutputStream(silent.client(), 200);
    assertThrows(SocketTimeoutException.class, () -> stuck.write(new byte[3 << 20]));
  }

  @Test
  void aFileGoesOutAsItIs() throws Exception {
    Pair pair = pair();
    byte[] content = bytes(2_000_000, 3);
    Path file = Files.write(directory.resolve("file"), content);
    CompletableFuture<byte[]> got = start(() -> read(pair.server(), 1));
    Pair cut = pair();
    CompletableFuture<byte[]> none = start(() -> read(cut.server(), 1));
    try (FileChannel from = FileChannel.open(file)) {
      pair.client().transferFrom(from, 100, 1000, LIMIT_MS);
      pair.client().transferFrom(from, 1100, content.length - 1100, LIMIT_MS);
      pair.client().transferFrom(from, 0, 100, LIMIT_MS);
      assertThrows(
          EOFException.class,
          () -> pair.client().transferFrom(from, content.length - 10, 20, LIMIT_MS));
      assertThrows(
          EOFException.class,
          () -> cut.client().transferFrom(from, content.length - 10, SMALL, LIMIT_MS));
    }
    pair.client().close();
    ByteBuffer all = ByteBuffer.allocate(content.length);
    all.put(content, 100, content.length - 100).put(content, 0, 100);
    assertArrayEquals(all.array(), got.get(20, TimeUnit.SECONDS));
    cut.client().close();
    String why = failure(none).getMessage();
    assertTrue(why.contains("within a record"), why);
  }

  private Pair announced(int bytes) throws IOException {
    UcxChannel stream = stream();
    SocketChannel tcp = connection();
    tcp.write(stream.name().encode());
    BodiesChannel server = listener.accept();
    tcp.write(ByteBuffer.allocate(4).putInt(Records.BY_UCX | bytes).flip());
    return new Pair(new BodiesChannel(tcp, stream, SMALL), server);
  }

  @Test
  void readersRunIntoTheirTimeOutsWhicheverWayTheyWaitFor() throws Exception {
    for (Pair pair : List.of(pair(), announced(5))) {
      BodiesChannel reader = pair.server();
      ByteBuffer to = ByteBuffer.allocate(10);
      assertThrows(SocketTimeoutException.class, () -> reader.read(to, 50));
      reader.configureBlocking(false);
      assertEquals(0, reader.read(to));
      reader.setShortWait(TimeUnit.MILLISECONDS.toNanos(20));
      assertEquals(0, reader.read(to));
      try (Selector selector = reader.provider().openSelector()) {
        SelectionKey key = reader.register(selector, SelectionKey.OP_READ);
        assertEquals(0, selector.select(50));
        key.cancel();
        assertEquals(0, selector.selectNow());
        reader.register(selector, SelectionKey.OP_READ | SelectionKey.OP_WRITE);
        assertEquals(1, selector.select(), "writable it is");
      }
      assertTrue(reader.isOpen());
    }
  }

  @Test
  void oneSelectorForBothWaysAndSeveralChannels() throws Exception {
    Pair byTcp = pair();
    Pair byUcx = announced(5);
    assertEquals(0, nonBlocking(byUcx.server()).read(ByteBuffer.allocate(1)));
    assertTrue(byUcx.server().waitsForUcx(SelectionKey.OP_READ));
    try (Selector selector = byTcp.server().provider().openSelector()) {
      nonBlocking(byTcp.server()).register(selector, SelectionKey.OP_READ);
      byUcx.server().register(selector, SelectionKey.OP_READ);
      assertEquals(0, selector.select(30));
      byTcp.client().write(ByteBuffer.allocate(1));
      assertEquals(1, selector.select());
      assertEquals(byTcp.server(), selector.selectedKeys().iterator().next().channel());
      selector.selectedKeys().clear();
      assertEquals(1, byTcp.server().read(ByteBuffer.allocate(2)));
      byUcx.client().ucx().write(ByteBuffer.allocate(5));
      assertEquals(1, selector.select());
      assertEquals(byUcx.server(), selector.selectedKeys().iterator().next().channel());
      assertEquals(5, byUcx.server().read(ByteBuffer.allocate(9)));
      selector.wakeup();
      assertEquals(0, selector.select());
    }
  }

  private static BodiesChannel nonBlocking(BodiesChannel channel) throws IOException {
    channel.configureBlocking(false);
    return channel;
  }

  /** Waits for UCX, whose window is full, or for TCP, whose buffers are. */
  @ParameterizedTest
  @ValueSource(ints = {2 << 20, 10_000})
  void writersRunIntoTheirTimeOutsAndGoOnLater(int size) throws Exception {
    Pair pair = pair();
    byte[] message = bytes(size, 9);
    int[] sent = {0};
    assertThrows(
        SocketTimeoutException.class,
        () -> {
          for (; ; ) {
            ByteBuffer from = rest(message, sent[0]);
            int before = from.remaining();
            try {
              pair.client().write(from, 100);
            } finally {
              sent[0] += before - from.remaining();
            }
          }
        });
    pair.client().configureBlocking(false);
    try (Selector selector = pair.client().provider().openSelector()) {
      pair.client().register(selector, SelectionKey.OP_WRITE);
      while (selector.select(100) > 0) { // TCP takes some more after a while
        selector.selectedKeys().clear();
        sent[0] += pair.client().write(rest(message, sent[0]));
      }
      CompletableFuture<byte[]> reader = start(() -> read(pair.server(), 2));
      assertEquals(1, selector.select(LIMIT_MS));
      sent[0] += pair.client().write(rest(message, sent[0]), LIMIT_MS);
      pair.client().shutdownOutput();
      byte[] got = reader.get(20, TimeUnit.SECONDS);
      assertEquals(sent[0], got.length);
      for (int i = 0; i < got.length; i++) {
        assertEquals(message[i % size], got[i]);
      }
    }
  }

  private static ByteBuffer rest(byte[] message, int sent) {
    int at = sent % message.length;
    return ByteBuffer.wrap(message, at, message.length - at);
  }

  /** As with whole streams: HDFS finds a stopped peer by its readers' time-outs. */
  @Test
  void aWriterDoesNotWaitForUcxOnceItsReaderHasGivenUp() throws Exception {
    Pair pair = pair();
    List<Service> told = new ArrayList<>();
    pair.client().ucx().onClose((service, why) -> told.add(service));
    CompletableFuture<Integer> writer =
        start(() -> pair.client().write(ByteBuffer.allocate(4 << 20), LIMIT_MS));
    assertThrows(
        SocketTimeoutException.class, () -> pair.client().read(ByteBuffer.allocate(1), 300));
    assertTrue(failure(writer).getMessage().contains("Connection reset"));
    pair.client().close();
    assertEquals(List.of(Service.SILENT), told);
  }

  @Test
  void answersByTcpCountAsCarried() throws Exception {
    Pair pair = pair();
    List<Service> told = new ArrayList<>();
    pair.client().ucx().onClose((service, why) -> told.add(service));
    pair.server().write(ByteBuffer.allocate(1));
    assertEquals(1, pair.client().read(ByteBuffer.allocate(2)));
    pair.client().close();
    assertEquals(List.of(Service.CARRIED), told);
  }

  @Test
  void closingAndInterruptingWakeAReader() throws Exception {
    for (Pair pair : List.of(pair(), announced(5))) {
      CompletableFuture<Integer> reader = start(() -> pair.server().read(ByteBuffer.allocate(1)));
      Thread.sleep(100);
      pair.server().close();
      assertTrue(failure(reader) instanceof AsynchronousCloseException);
      assertFalse(pair.server().tcp().isOpen());
      assertFalse(pair.server().ucx().isOpen());
    }
    for (Pair pair : List.of(pair(), announced(5))) {
      Thread here = Thread.currentThread();
      start(
          () -> {
            Thread.sleep(100);
            here.interrupt();
            return null;
          });
      assertThrows(
          ClosedByInterruptException.class, () -> pair.server().read(ByteBuffer.allocate(1)));
      assertTrue(Thread.interrupted());
      assertFalse(pair.server().isOpen());
    }
    for (Pair pair : List.of(pair(), announced(5))) {
      CompletableFuture<Integer> reader = start(() -> pair.server().read(ByteBuffer.allocate(1)));
      Thread.sleep(100);
      pair.server().shutdownInput();
      assertEquals(-1, reader.get(10, TimeUnit.SECONDS));
    }
  }

  @Test
  void whereOneWayFailsBothEnd() throws Exception {
    Pair cut = pair();
    cut.client().ucx().close();
    CompletableFuture<Integer> writer =
        start(
            () -> {
              for (; ; ) {
                cut.server().write(ByteBuffer.allocate(SMALL), LIMIT_MS);
              }
            });
    assertTrue(failure(writer).getMessage().contains("Broken pipe"));
    assertThrows(
        IOException.class,
        () -> {
          while (cut.client().read(ByteBuffer.allocate(9), LIMIT_MS) >= 0) {}
        });
    Pair malformed = pair();
    malformed.client().tcp().write(ByteBuffer.allocate(4));
    assertThrows(IOException.class, () -> malformed.server().read(ByteBuffer.allocate(1)));
    assertFalse(malformed.server().isOpen());
    assertFalse(malformed.server().ucx().isOpen());
    Pair bodiless = announced(5);
    bodiless.client().ucx().shutdownOutput();
    assertThrows(IOException.class, () -> bodiless.server().read(ByteBuffer.allocate(1)));
    assertFalse(bodiless.server().tcp().isOpen());
  }

  /** A DataNode says why it ends a write, and ends it, while the client still writes. */
  @Test
  void whatAPeerHasWrittenIsReadThoughItTakesNoMore() throws Exception {
    Pair pair = pair();
    pair.server().write(ByteBuffer.wrap(new byte[] {42}));
    pair.server().close();
    assertThrows(
        IOException.class,
        () -> {
          for (; ; ) {
            pair.client().write(ByteBuffer.allocate(SMALL), LIMIT_MS);
          }
        });
    ByteBuffer got = ByteBuffer.allocate(2);
    assertEquals(1, pair.client().read(got));
    assertEquals(42, got.get(0));
  }

  // ---- pairs

  @Test
  void halvesFindEachOtherWhicheverIsFirst() throws Exception {
    List<BodiesChannel> clients = new ArrayList<>();
    List<UcxChannel> streams = new ArrayList<>();
    for (int i = 0; i < 10; i++) {
      streams.add(stream());
    }
    UcxTests.eventually("they wait", () -> listener.waiting() == 10);
    java.util.Collections.shuffle(streams, new Random(4));
    for (UcxChannel stream : streams) {
      BodiesChannel client = BodiesChannel.connected(connection(), stream, SMALL);
      client.write(ByteBuffer.allocate(8).putInt(stream.stream().id).putInt(0).flip());
      clients.add(client);
    }
    for (int i = 0; i < 10; i++) {
      BodiesChannel server = listener.accept();
      ByteBuffer got = ByteBuffer.allocate(8);
      server.read(got);
      assertEquals(server.ucx().stream().id, got.getInt(0));
    }
    assertEquals(0, listener.waiting());
  }

  private CompletableFuture<BodiesChannel> accepting() {
    return start(() -> listener.accept());
  }

  private static void assertEnds(SocketChannel tcp) {
    try {
      assertEquals(-1, tcp.read(ByteBuffer.allocate(1)));
    } catch (IOException e) {
      assertTrue(e.getMessage().contains("reset"), e.getMessage());
    }
  }

  @Test
  void whatStaysHalfIsClosedInTime() throws Exception {
    listener.close();
    listener = listen(300);
    CompletableFuture<BodiesChannel> acceptor = accepting();
    SocketChannel nameless = connection();
    SocketChannel unmatched = connection();
    unmatched.write(new StreamName(1, 1).encode());
    SocketChannel stranger = connection();
    stranger.write(ByteBuffer.allocate(StreamName.BYTES));
    UcxChannel stream = stream();
    UcxTests.eventually("two wait", () -> listener.waiting() == 2);
    assertEnds(stranger);
    assertEquals(-1, stream.read(ByteBuffer.allocate(1), LIMIT_MS));
    assertEnds(nameless);
    assertEnds(unmatched);
    assertEquals(0, listener.waiting());
    listener.close();
    assertTrue(failure(acceptor) instanceof ClosedChannelException);
  }

  @Test
  void moreHalvesThanMayWaitAreClosed() throws Exception {
    CompletableFuture<BodiesChannel> acceptor = accepting();
    List<SocketChannel> waiting = new ArrayList<>();
    for (int i = 0; i < BodiesListener.MOST_WAITING; i++) {
      SocketChannel tcp = connection();
      tcp.write(new StreamName(1, i).encode());
      waiting.add(tcp);
    }
    UcxTests.eventually("all wait", () -> listener.waiting() == BodiesListener.MOST_WAITING);
    SocketChannel again = connection();
    again.write(new StreamName(1, 0).encode());
    assertEnds(again);
    SocketChannel more = connection();
    more.write(new StreamName(2, 0).encode());
    assertEnds(more);
    assertEquals(BodiesListener.MOST_WAITING, listener.waiting());
    for (SocketChannel each : waiting) {
      each.close();
    }
    listener.close();
    assertTrue(failure(acceptor) instanceof ClosedChannelException);
  }

  @Test
  void wholeStreamsAreNotMistaken() throws Exception {
    UcxListener whole = node.listen(UcxTests.ANY, 16);
    try (UcxChannel client = node.connect(whole.address(), LIMIT_MS)) {
      client.write(ByteBuffer.allocate(10));
      assertEquals(10, whole.accept(LIMIT_MS).read(ByteBuffer.allocate(20)));
    } catch (UncheckedIOException e) {
      throw e.getCause();
    }
    whole.close();
  }
}

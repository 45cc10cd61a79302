package io.trunkline.hadoop.tap;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.StockBytes;
import io.trunkline.hadoop.library.NativeLibrary;
import io.trunkline.hadoop.wire.PacketHead;
import io.trunkline.hadoop.wire.WriteOp;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InterruptedIOException;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hdfs.protocol.datatransfer.BlockConstructionStage;
import org.apache.hadoop.net.SocketInputStream;
import org.apache.hadoop.net.SocketOutputStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class TapChannelTest {
  private static final byte[] MARK = {7, 7, 7};

  private ServerSocket server;
  private SocketChannel real;
  private Socket far;
  private Socket left;

  @BeforeAll
  static void load() throws IOException {
    NativeLibrary.load("");
  }

  @BeforeEach
  void connect() throws IOException {
    server = new ServerSocket();
    server.setReceiveBufferSize(8192);
    server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    real = SocketChannel.open();
    real.setOption(StandardSocketOptions.SO_SNDBUF, 8192);
    real.connect(server.getLocalSocketAddress());
    far = server.accept();
  }

  @AfterEach
  void close() throws IOException {
    real.close();
    far.close();
    server.close();
  }

  /** The other connection's port; {@link #far} is its end of the connection from now on. */
  private SocketChannel connectElsewhere() throws IOException {
    SocketChannel stock = SocketChannel.open();
    stock.setOption(StandardSocketOptions.SO_SNDBUF, 8192);
    stock.connect(server.getLocalSocketAddress());
    left = far;
    far = server.accept();
    return stock;
  }

  /** Goes to another connection with whatever it is. */
  private TapChannel moving() {
    return new TapChannel(
        null,
        real,
        new TapListener() {
          @Override
          public WriteHandler write(WriteOp op, TapConnection connection, TapOutput out)
              throws IOException {
            connection.moveTo(TapChannelTest.this::connectElsewhere);
            return PassThrough.INSTANCE;
          }

          @Override
          public void other(TapConnection connection) throws IOException {
            connection.moveTo(TapChannelTest.this::connectElsewhere);
          }
        });
  }

  /** Sends a mark before the header, and a mark and the head in place of each packet. */
  private TapChannel rewriting() {
    PacketRewriter rewriter =
        new PacketRewriter() {
          @Override
          public void packet(PacketHead head, byte[] body, int off, TapOutput out) {
            out.reserve(MARK.length + head.bytes().length).put(MARK).put(head.bytes());
          }
        };
    return new TapChannel(
        null,
        real,
        new TapListener() {
          @Override
          public WriteHandler write(WriteOp op, TapConnection connection, TapOutput out) {
            out.reserve(MARK.length).put(MARK);
            return rewriter;
          }

          @Override
          public void other(TapConnection connection) {
            throw new AssertionError("a write");
          }
        });
  }

  /** A header may carry a token, which is only for where the listener goes. */
  @Test
  void aConnectionThatIsLeftHasCarriedNothing() throws IOException {
    byte[] header =
        StockBytes.writeHeader(1, BlockConstructionStage.PIPELINE_SETUP_CREATE, "client");
    for (boolean blocking : new boolean[] {true, false}) {
      if (!blocking) {
        close();
        connect();
      }
      try (TapChannel channel = moving()) {
        channel.configureBlocking(blocking);
        write(channel, Arrays.copyOf(header, 10));
        assertNull(left, "nothing is decided yet");
        write(channel, Arrays.copyOfRange(header, 10, header.length));
        write(channel, new byte[] {1, 2, 3});
        assertEquals(-1, left.getInputStream().read(), "no byte");
        assertArrayEquals(header, far.getInputStream().readNBytes(header.length));
        assertArrayEquals(new byte[] {1, 2, 3}, far.getInputStream().readNBytes(3));
        assertEquals(blocking, channel.real().isBlocking());
        assertEquals(far.getLocalSocketAddress(), channel.getRemoteAddress());
        left = null;
      }
    }
  }

  @Test
  void readsTimeOutAsOnARealChannel() throws IOException {
    try (TapChannel channel = moving()) {
      write(channel, new byte[] {0, 28, 81});
      SocketInputStream in = new SocketInputStream(channel, 200);
      for (int i = 0; i < 3; i++) {
        long start = System.nanoTime();
        assertThrows(SocketTimeoutException.class, () -> in.read(new byte[10]));
        long ms = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
        assertTrue(ms >= 190 && ms < 5000, "waited " + ms);
      }
      far.getOutputStream().write(new byte[] {1, 2, 3});
      byte[] got = new byte[3];
      int have = 0;
      while (have < 3) {
        have += in.read(got, have, 3 - have);
      }
      assertArrayEquals(new byte[] {1, 2, 3}, got);
      far.close();
      assertEquals(-1, in.read());
    }
  }

  @Test
  void writesTimeOutWhenNobodyReads() throws IOException {
    try (TapChannel channel = moving()) {
      SocketOutputStream out = new SocketOutputStream(channel, 300);
      out.write(new byte[] {0, 28, 81});
      assertThrows(
          SocketTimeoutException.class,
          () -> {
            for (int i = 0; i < 1000; i++) {
              out.write(new byte[100_000]);
            }
          });
    }
  }

  @Test
  void aReaderAndAWriterShareTheChannel() throws Exception {
    try (TapChannel channel = moving()) {
      SocketInputStream in = new SocketInputStream(channel, 10_000);
      SocketOutputStream out = new SocketOutputStream(channel, 10_000);
      byte[] op = {0, 28, 81};
      byte[] data = StockBytes.random(new Random(1), 3 << 20);
      out.write(op);
      CompletableFuture<Void> echo =
          CompletableFuture.runAsync(
              () -> {
                try {
                  far.getInputStream().transferTo(far.getOutputStream());
                } catch (IOException e) {
                  throw new UncheckedIOException(e);
                }
              });
      CompletableFuture<Void> writer =
          CompletableFuture.runAsync(
              () -> {
                try {
                  out.write(data);
                } catch (IOException e) {
                  throw new UncheckedIOException(e);
                }
              });
      byte[] echoed = new byte[op.length + data.length];
      new DataInputStream(in).readFully(echoed);
      assertArrayEquals(op, Arrays.copyOf(echoed, op.length));
      assertArrayEquals(data, Arrays.copyOfRange(echoed, op.length, echoed.length));
      writer.get(10, TimeUnit.SECONDS);
      channel.shutdownOutput();
      echo.get(10, TimeUnit.SECONDS);
    }
  }

  @Test
  void aPacketIsSentOnlyWhenAllHasGoneOutThatStandsForIt() throws Exception {
    try (TapChannel channel = rewriting()) {
      channel.configureBlocking(false);
      write(
          channel,
          StockBytes.writeHeader(1, BlockConstructionStage.PIPELINE_SETUP_CREATE, "client"));
      byte[] heartbeat = StockBytes.heartbeat();
      ByteBuffer packet = ByteBuffer.wrap(heartbeat);
      int sentWhole = 0;
      while (sentWhole < 1_000_000) {
        packet.rewind();
        while (channel.write(packet) > 0) {
          // until nothing is taken: the system may find more room meanwhile
        }
        if (packet.hasRemaining()) {
          break;
        }
        sentWhole++;
      }
      assertTrue(packet.hasRemaining(), "the connection never filled up");
      CompletableFuture<Long> count =
          CompletableFuture.supplyAsync(
              () -> {
                try (InputStream in = far.getInputStream()) {
                  return in.transferTo(OutputStream.nullOutputStream());
                } catch (IOException e) {
                  throw new UncheckedIOException(e);
                }
              });
      channel.configureBlocking(true);
      while (packet.hasRemaining()) {
        channel.write(packet);
      }
      sentWhole++;
      channel.close();
      long header =
          MARK.length
              + StockBytes.writeHeader(1, BlockConstructionStage.PIPELINE_SETUP_CREATE, "client")
                  .length;
      assertEquals(
          header + (long) sentWhole * (MARK.length + heartbeat.length),
          count.get(20, TimeUnit.SECONDS));
    }
  }

  @Test
  void whoLetsAllPassIsToldOnceThatTheHeaderHasLeft() throws IOException {
    byte[] header =
        StockBytes.writeHeader(1, BlockConstructionStage.PIPELINE_SETUP_CREATE, "client");
    List<Integer> arrived = new ArrayList<>();
    PassThrough passes =
        new PassThrough() {
          @Override
          public void headerSent() {
            try {
              arrived.add(far.getInputStream().readNBytes(header.length).length);
            } catch (IOException e) {
              throw new UncheckedIOException(e);
            }
          }
        };
    try (TapChannel channel = new TapChannel(null, real, chooses(passes))) {
      write(channel, Arrays.copyOf(header, header.length - 1));
      assertEquals(List.of(), arrived);
      write(channel, new byte[] {header[header.length - 1], 1, 2, 3});
      write(channel, new byte[] {4, 5});
      assertEquals(List.of(header.length), arrived);
      assertArrayEquals(new byte[] {1, 2, 3, 4, 5}, far.getInputStream().readNBytes(5));
    }
  }

  /** A listener to which nothing comes but writes. */
  private static TapListener chooses(WriteHandler handler) {
    return new TapListener() {
      @Override
      public WriteHandler write(WriteOp op, TapConnection connection, TapOutput out) {
        return handler;
      }

      @Override
      public void other(TapConnection connection) {
        throw new AssertionError("a write");
      }
    };
  }

  private static void write(TapChannel channel, byte[] bytes) throws IOException {
    ByteBuffer in = ByteBuffer.wrap(bytes);
    while (in.hasRemaining()) {
      channel.write(in);
    }
  }

  /** Of what comes back each fourth byte is for stock code. */
  private TapChannel everyFourth() throws IOException {
    PacketRewriter everyFourth =
        new PacketRewriter() {
          private int seen;

          @Override
          public void packet(PacketHead head, byte[] body, int off, TapOutput out) {
            throw new AssertionError("nothing but a header is written");
          }

          @Override
          public int answered(ByteBuffer in, int from, int to) {
            int at = from;
            for (int i = from; i < to; i++) {
              seen++;
              if (seen % 4 == 0) {
                in.put(at++, in.get(i));
              }
            }
            return at - from;
          }
        };
    TapChannel channel = new TapChannel(null, real, chooses(everyFourth));
    channel.configureBlocking(false);
    write(
        channel, StockBytes.writeHeader(1, BlockConstructionStage.PIPELINE_SETUP_CREATE, "client"));
    return channel;
  }

  @Test
  void whatIsNotForStockCodeIsReadOver() throws IOException {
    try (TapChannel channel = everyFourth()) {
      far.getOutputStream().write(new byte[] {0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0});
      ByteBuffer one = ByteBuffer.allocate(1);
      assertEquals(1, new SocketInputStream(channel, 20_000).read(one), "waits for all of it");
      assertEquals(1, one.get(0));
      assertEquals(1, channel.read(one.rewind()), "without another look at a selector");
      assertEquals(2, one.get(0));
      assertEquals(0, channel.read(one.rewind()), "nothing more for stock code");
      far.getOutputStream().write(new byte[] {3, 0, 0, 0, 4});
      far.shutdownOutput();
      ByteBuffer rest = ByteBuffer.allocate(100);
      assertEquals(2, new SocketInputStream(channel, 20_000).read(rest), "frames go on");
      assertArrayEquals(new byte[] {3, 4}, Arrays.copyOf(rest.array(), 2));
      assertEquals(-1, channel.read(rest));
    }
  }

  /** A selector that waited for the connection would wait for what has come long ago. */
  @Test
  void whatWasReadAheadIsReadable() throws IOException {
    try (TapChannel channel = everyFourth();
        var selector = channel.provider().openSelector()) {
      far.getOutputStream().write(new byte[] {0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3});
      var key = channel.register(selector, SelectionKey.OP_READ);
      assertEquals(1, selector.select(20_000));
      ByteBuffer one = ByteBuffer.allocate(1);
      for (byte next = 1; next <= 3; next++) {
        assertEquals(1, selector.select(20_000), "before byte " + next);
        assertTrue(key.isReadable());
        assertEquals(1, channel.read(one.rewind()));
        assertEquals(next, one.get(0));
      }
      selector.selectedKeys().clear();
      assertEquals(0, selector.selectNow());
      far.getOutputStream().write(new byte[] {0, 0, 0, 4, 0, 0, 0, 5});
      new SocketInputStream(channel, 20_000).read(one.rewind());
      assertEquals(4, one.get(0));
      channel.close();
      assertThrows(ClosedChannelException.class, () -> channel.read(one.rewind()));
    }
  }

  /** Waits without a selector end by no interrupt, so they are short, and stock code's follow. */
  @Test
  void aReaderIsInterruptedAsOnARealChannel() throws Exception {
    try (TapChannel channel = moving()) {
      write(channel, new byte[] {0, 28, 81});
      SocketInputStream in = new SocketInputStream(channel, 0);
      CompletableFuture<Throwable> ended = new CompletableFuture<>();
      Thread reader =
          new Thread(
              () -> {
                try {
                  in.read(new byte[1]);
                  ended.complete(null);
                } catch (IOException e) {
                  ended.complete(e);
                }
              });
      reader.start();
      Thread.sleep(200);
      reader.interrupt();
      assertInstanceOf(InterruptedIOException.class, ended.get(20, TimeUnit.SECONDS));
      assertTrue(channel.isOpen());
    }
  }

  /** Of acknowledgements stock code reads a byte of their length at a time. */
  @Test
  void whatIsReadByFewBytesIsWhatCame() throws Exception {
    try (TapChannel channel = moving()) {
      write(channel, new byte[] {0, 28, 81});
      SocketInputStream in = new SocketInputStream(channel, 20_000);
      byte[] sent = StockBytes.random(new Random(2), 300_000);
      CompletableFuture<Void> sender =
          CompletableFuture.runAsync(
              () -> {
                try {
                  OutputStream out = far.getOutputStream();
                  for (int at = 0; at < sent.length; at += 777) {
                    out.write(sent, at, Math.min(777, sent.length - at));
                  }
                  far.shutdownOutput();
                } catch (IOException e) {
                  throw new UncheckedIOException(e);
                }
              });
      int[] parts = {1, 41, 1, 1, 5000, 3};
      ByteBuffer got = ByteBuffer.allocate(sent.length);
      for (int i = 0; got.hasRemaining(); i++) {
        int count =
            in.read(
                got.array(), got.position(), Math.min(parts[i % parts.length], got.remaining()));
        got.position(got.position() + count);
      }
      assertArrayEquals(sent, got.array());
      assertEquals(-1, in.read());
      sender.get(20, TimeUnit.SECONDS);
    }
  }

  @Test
  void aClosedChannelEndsReadersAndWriters() throws IOException {
    TapChannel channel = moving();
    SocketInputStream in = new SocketInputStream(channel, 0);
    channel.close();
    assertThrows(ClosedChannelException.class, () -> in.read(new byte[1]));
    assertFalse(real.isOpen());
  }

  @Test
  void manyKeysComeAndGoOnOneSelector() throws IOException {
    try (TapChannel channel = moving();
        var selector = channel.provider().openSelector()) {
      channel.configureBlocking(false);
      for (int i = 0; i < 100; i++) {
        var key = channel.register(selector, SelectionKey.OP_WRITE);
        assertEquals(1, selector.select(1000));
        assertTrue(selector.selectedKeys().contains(key));
        assertTrue(key.isWritable());
        key.cancel();
        assertEquals(0, selector.selectNow());
        assertTrue(selector.keys().isEmpty());
      }
    }
  }
}

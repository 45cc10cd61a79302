package io.trunkline.hadoop.mirror;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.trunkline.hadoop.library.NativeLibrary;
import java.io.BufferedInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import org.apache.hadoop.hdfs.protocol.datatransfer.PacketHeader;
import org.apache.hadoop.net.SocketInputStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class WholePacketsTest {
  private static final int BODY = 60_000;

  /** Long enough for what was sent on the loopback to have come. */
  private static final int WHILE_MS = 300;

  private SocketChannel writer;
  private SocketChannel real;
  private SocketInputStream stream;
  private InputStream in;

  @BeforeEach
  void connect() throws IOException {
    NativeLibrary.load("");
    try (ServerSocketChannel server = ServerSocketChannel.open()) {
      server.bind(new InetSocketAddress("127.0.0.1", 0));
      writer = SocketChannel.open(server.getLocalAddress());
      real = server.accept();
    }
    stream = new SocketInputStream(real, 20_000);
    in = new DataInputStream(new BufferedInputStream(stream, 512)); // as DataXceiver has it
  }

  @AfterEach
  void close() throws IOException {
    writer.close();
    stream.close();
    real.close();
  }

  private void send(byte[] bytes) throws IOException {
    ByteBuffer out = ByteBuffer.wrap(bytes);
    while (out.hasRemaining()) {
      writer.write(out);
    }
  }

  private static byte[] packet(int seqno, int body, boolean last) throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    ByteBuffer head = ByteBuffer.allocate(PacketHeader.PKT_MAX_HEADER_LEN);
    new PacketHeader(4 + body, (long) seqno * BODY, seqno, last, body, false).putInBuffer(head);
    head.flip();
    bytes.write(head.array(), head.position(), head.remaining());
    byte[] content = new byte[body];
    Arrays.fill(content, (byte) seqno);
    bytes.write(content);
    return bytes.toByteArray();
  }

  /** Whether a reader that selects is woken by what has come. */
  private boolean woken() throws IOException {
    try (Selector selector = Selector.open()) {
      real.register(selector, java.nio.channels.SelectionKey.OP_READ);
      return selector.select(WHILE_MS) > 0;
    }
  }

  @Test
  void aReaderIsWokenByTheRestOfAPacketAndByAnyByteOfTheNext() throws IOException {
    WholePackets packets = WholePackets.on(stream);
    assertNotNull(packets);
    byte[] first = packet(1, BODY, false);
    send(Arrays.copyOf(first, 2000));
    assertArrayEquals(Arrays.copyOf(first, 2000), in.readNBytes(2000));
    assertEquals(0, packets.read(ByteBuffer.allocate(1)));
    send(Arrays.copyOfRange(first, 2000, first.length - 1));
    assertEquals(false, woken());
    send(Arrays.copyOfRange(first, first.length - 1, first.length));
    assertEquals(true, woken());
    byte[] rest = Arrays.copyOfRange(first, 2000, first.length);
    assertArrayEquals(rest, in.readNBytes(rest.length));
    assertEquals(0, packets.read(ByteBuffer.allocate(1)));
    send(Arrays.copyOf(packet(2, 1, true), 1));
    assertEquals(true, woken());
  }

  @Test
  void packetsOfAllLengthsComeAsTheyAre() throws Exception {
    WholePackets packets = WholePackets.on(stream);
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    for (int body : new int[] {1, 0, BODY, 100, 3000, 500_000, BODY, 0}) {
      all.write(packet(all.size() % 100, body, false));
    }
    byte[] bytes = all.toByteArray();
    CompletableFuture<Void> sent =
        CompletableFuture.runAsync(
            () -> {
              try {
                for (int at = 0; at < bytes.length; at += 1777) {
                  send(Arrays.copyOfRange(bytes, at, Math.min(at + 1777, bytes.length)));
                }
              } catch (IOException e) {
                throw new IllegalStateException(e);
              }
            });
    assertArrayEquals(bytes, in.readNBytes(bytes.length));
    sent.get();
    packets.end();
    send(new byte[] {7});
    assertEquals(7, in.read());
  }

  @Test
  void aPacketThatDoesNotEndTimesOutAndOneThatIsCutEnds() throws IOException {
    WholePackets packets = WholePackets.on(stream);
    stream.setTimeout(WHILE_MS);
    byte[] packet = packet(1, BODY, false);
    send(Arrays.copyOf(packet, 30_000));
    assertThrows(SocketTimeoutException.class, () -> in.readNBytes(packet.length));
    stream.setTimeout(20_000);
    writer.shutdownOutput();
    assertEquals(-1, packets.read(ByteBuffer.allocate(1)));
  }

  @Test
  void aWriterThatClosesIsSeenInAPacket() throws IOException {
    WholePackets.on(stream);
    byte[] packet = packet(1, BODY, false);
    send(Arrays.copyOf(packet, 30_000));
    writer.close();
    assertEquals(30_000, in.readAllBytes().length);
  }

  @Test
  void whatIsNoPacketIsReadAsItComes() throws IOException {
    WholePackets.on(stream);
    byte[] nonsense = new byte[10_000];
    Arrays.fill(nonsense, (byte) 0xff);
    send(nonsense);
    assertArrayEquals(nonsense, in.readNBytes(nonsense.length));
    send(new byte[] {7});
    assertEquals(7, in.read());
  }

  @Test
  void anEndedOneLeavesNothingBehind() throws IOException {
    WholePackets packets = WholePackets.on(stream);
    byte[] packet = packet(1, BODY, false);
    send(Arrays.copyOf(packet, 2000));
    in.readNBytes(2000);
    assertEquals(0, packets.read(ByteBuffer.allocate(1)));
    packets.end();
    assertSame(real, stream.getChannel());
    send(new byte[] {7});
    assertEquals(true, woken());
    assertEquals(7, in.read());
    packets.end();
    stream.close();
    assertEquals(-1, writer.read(ByteBuffer.allocate(1)), "the connection is held");
  }

  @Test
  void oneThatIsClosedInAPacketEndsTheConnection() throws IOException {
    WholePackets.on(stream);
    stream.close();
    assertEquals(-1, writer.read(ByteBuffer.allocate(1)), "the connection is held");
  }

  @Test
  void otherStreamsAreLeftAlone() throws IOException {
    assertNull(WholePackets.on(InputStream.nullInputStream()));
    stream.close();
    assertNull(WholePackets.on(stream));
  }
}

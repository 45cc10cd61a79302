package io.trunkline.hadoop.ndn.datanode;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.StockBytes;
import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.library.NativeLibrary;
import io.trunkline.hadoop.ndn.NativeSecurity;
import io.trunkline.hadoop.ndn.secure.SecureSession;
import io.trunkline.hadoop.ndn.wire.ControlRecord;
import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.ndn.wire.SecureHello;
import io.trunkline.hadoop.ndn.wire.Welcome;
import io.trunkline.hadoop.ndn.wire.WriteKey;
import io.trunkline.hadoop.wire.PacketHead;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.protocol.datatransfer.BlockConstructionStage;
import org.apache.hadoop.hdfs.security.token.block.BlockTokenIdentifier;
import org.apache.hadoop.security.token.Token;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What is done for a write before stock code has looked at its token, and what is left of it. */
@Timeout(60)
class PermissionTest {
  private static final byte[] PASSWORD = {1, 2, 3};
  private static final byte[] IDENTIFIER = {4, 5};
  private static final String ADDRESS = "10.0.0.1:9866";

  private final PublishedSegments network = new PublishedSegments();
  private final Welcome welcome = Welcome.draw();
  private final ByteArrayOutputStream later = new ByteArrayOutputStream();
  private final byte[] header =
      StockBytes.writeHeader(
          3,
          3,
          BlockConstructionStage.PIPELINE_SETUP_CREATE,
          "client",
          new Token<BlockTokenIdentifier>(IDENTIFIER, PASSWORD, null, null),
          128L << 20);

  /** What this end's clock has gone ahead, in nanoseconds, and how often the wire was read. */
  private final AtomicLong ahead = new AtomicLong();

  private int reads;

  /** The client says nothing in record after record, every 4 seconds. */
  private boolean saysNothing;

  private SecureSession client;
  private WriteKey key;

  @BeforeEach
  void handshake() throws IOException {
    NativeLibrary.load(Settings.from(new Configuration(false)).nativeLibrary());
    client = SecureSession.client(welcome, PASSWORD, IDENTIFIER, ADDRESS);
    key = new WriteKey(NativeSecurity.keyDraw());
  }

  private void seal(byte[] bytes) throws IOException {
    ByteBuffer record = ByteBuffer.allocate(2 + SecureHello.MAX_RECORD_BYTES);
    client.seal(bytes, 0, bytes.length, record);
    later.write(record.array(), 0, record.position());
  }

  /** The client's bytes; all but its hello are made when the handshake has been answered. */
  private final InputStream wire =
      new InputStream() {
        private InputStream part;
        private boolean answered;

        @Override
        public int read(byte[] to, int off, int length) throws IOException {
          if (part == null) {
            part =
                new ByteArrayInputStream(
                    new SecureHello(IDENTIFIER, ADDRESS, client.say()).encode());
          }
          int most = length;
          if (answered && saysNothing) {
            reads++;
            ahead.addAndGet(TimeUnit.SECONDS.toNanos(4));
            most = 2 + SecureHello.SEAL_BYTES;
          }
          int count = part.read(to, off, most);
          if (count < 0 && !answered) {
            answered = true;
            part = new ByteArrayInputStream(later.toByteArray());
            count = read(to, off, length);
          }
          return count;
        }

        @Override
        public int read() {
          throw new AssertionError();
        }
      };

  private final NamedInput.Security security =
      new NamedInput.Security() {
        @Override
        public boolean required() {
          return true;
        }

        @Override
        public SecureSession answer(SecureHello hello) throws IOException {
          SecureSession server = SecureSession.server(welcome, PASSWORD, IDENTIFIER, ADDRESS);
          server.hear(hello.message());
          client.hear(server.say());
          for (int i = 0; saysNothing && i < 100; i++) {
            seal(new byte[0]);
          }
          String name = PublishedSegments.PREAMBLE.name();
          seal(new Preamble(name, 99, StockBytes.SEGMENT, key).encode());
          seal(header);
          seal(record(1));
          return server;
        }
      };

  /** That of a packet that goes by name, with so many digests. */
  static byte[] record(int segments) throws IOException {
    byte[] packet = StockBytes.packet(0, 0, false, new byte[StockBytes.SEGMENT]);
    int body = StockBytes.CHECKSUM.getChecksumSize(StockBytes.SEGMENT) + StockBytes.SEGMENT;
    PacketHead head = PacketHead.parse(Arrays.copyOf(packet, packet.length - body));
    byte[] digests = new byte[segments * ControlRecord.DIGEST_BYTES];
    ByteBuffer out = ByteBuffer.allocate(ControlRecord.MAX_BYTES);
    new ControlRecord(ControlRecord.BLOCK_SEGMENT, 0, head, digests).encode(out);
    return Arrays.copyOf(out.array(), out.position());
  }

  private BodyPuller puller;

  private NamedInput input() {
    return new NamedInput(
        new ControlInput(wire, Channels.newChannel(InputStream.nullInputStream())),
        PublishedSegments.NAMES,
        (op, preamble, records) -> {
          key = preamble.key();
          puller =
              new BodyPuller(
                  op,
                  preamble,
                  records,
                  (prefix, stream, first) -> network.source(prefix, piece -> true),
                  300,
                  () -> 0);
          return puller;
        },
        new NamedInput.Answers() {
          @Override
          public void begin() {}

          @Override
          public void ask(long seqno) {}
        },
        security,
        () -> System.nanoTime() + ahead.get());
  }

  /** A token may be one for another block, or to read: nobody is to be asked in its name then. */
  @Test
  void nothingIsPulledBeforeTheTokenHasBeenLookedAt() throws Exception {
    try (NamedInput in = input()) {
      assertTrue(in.secured());
      assertArrayEquals(header, in.readNBytes(header.length));
      assertEquals(0, network.opened.size(), network.opened + " before stock code was asked");
      // It reads on, so it has found the token good. Nobody has published the packet's body.
      assertThrows(IOException.class, in::readAllBytes);
      assertEquals(1, network.opened.size());
    }
    assertEquals(network.opened, network.closed);
  }

  /** Each record keeps the read timeout from passing. */
  @Test
  void whoSaysNothingInRecordsIsLeft() throws Exception {
    saysNothing = true;
    try (NamedInput in = input()) {
      assertTrue(in.secured());
      assertThrows(SocketTimeoutException.class, in::read);
      assertTrue(reads <= 4, reads + " records of nothing were heard out");
    }
  }

  @Test
  void nothingIsPulledForATokenThatIsRefused() throws Exception {
    try (NamedInput in = input()) {
      assertTrue(in.secured());
      in.readNBytes(header.length);
    }
    assertEquals(0, network.opened.size());
  }

  @Test
  void keysAreWipedWhenTheWriteIsOver() throws Exception {
    byte[] bytes;
    try (NamedInput in = input()) {
      assertTrue(in.secured());
      in.readNBytes(header.length);
      bytes = key.bytes();
      assertTrue(!Arrays.equals(new byte[WriteKey.BYTES], bytes));
    }
    assertArrayEquals(new byte[WriteKey.BYTES], bytes);
  }
}

package io.trunkline.hadoop.ndn.datanode;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.RecordingProxy;
import io.trunkline.hadoop.StockBytes;
import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.ndn.Names;
import io.trunkline.hadoop.ndn.Native;
import io.trunkline.hadoop.ndn.NativeSecurity;
import io.trunkline.hadoop.ndn.secure.SealedWire;
import io.trunkline.hadoop.ndn.secure.SecureClient;
import io.trunkline.hadoop.ndn.secure.SecureSession;
import io.trunkline.hadoop.ndn.wire.DataNodeAddress;
import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.ndn.wire.SecureHello;
import io.trunkline.hadoop.ndn.wire.SegmentCut.Piece;
import io.trunkline.hadoop.ndn.wire.SegmentHeader;
import io.trunkline.hadoop.ndn.wire.Welcome;
import io.trunkline.hadoop.ndn.wire.WriteKey;
import io.trunkline.hadoop.ndn.write.NamedWrites;
import io.trunkline.hadoop.ndn.write.PacketsInFlight;
import io.trunkline.hadoop.ndn.write.Plan;
import io.trunkline.hadoop.ndn.write.Planner;
import io.trunkline.hadoop.ndn.write.Publisher;
import io.trunkline.hadoop.ndn.write.SilentPublisher;
import io.trunkline.hadoop.ndn.write.WritePlanner;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.tap.TapChannel;
import io.trunkline.hadoop.wire.BlockToken;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Arrays;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.protocol.DatanodeID;
import org.apache.hadoop.hdfs.protocol.datatransfer.BlockConstructionStage;
import org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.Status;
import org.apache.hadoop.hdfs.security.token.block.BlockTokenIdentifier;
import org.apache.hadoop.hdfs.security.token.block.BlockTokenSecretManager;
import org.apache.hadoop.security.token.SecretManager.InvalidToken;
import org.apache.hadoop.security.token.Token;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The control connection of a write with a block token, from its tap to the DataNode's peer. */
@Timeout(120)
class SecurePeerTest {
  private static final int PACKETS = 24;

  /** The DataNode that the peer is of, and how a client says that it means this one. */
  private static final OwnAddresses OWN =
      new OwnAddresses(() -> new DatanodeID("10.0.0.1", "dn1", "u", 9866, 1, 2, 3), Set::of);

  private static final InetSocketAddress MEANT = new InetSocketAddress("10.0.0.1", 9866);
  private static final String SAID = DataNodeAddress.of(MEANT);

  private final TransferStats stats = TransferStats.get();
  private final Settings settings = settings();
  private final BlockTokenSecretManager keys = BlockTokensTest.keys(false);
  private final Random random = new Random(17);
  private NodesByCategory nodes;
  private ServerSocketChannel server;
  private RecordingProxy proxy;
  private SocketChannel client;
  private Welcome welcome;
  private NamedPeer peer;
  private InetSocketAddress meant = MEANT;
  private Token<BlockTokenIdentifier> token;

  private static Settings settings() {
    Configuration conf = new Configuration(false);
    conf.setInt("trunkline.ndn.inline.bytes", 0);
    return Settings.from(conf);
  }

  @BeforeEach
  void open() throws IOException {
    nodes = new NodesByCategory(settings);
    server = ServerSocketChannel.open();
    server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    token = BlockTokensTest.token(keys, 3);
  }

  @AfterEach
  void close() throws IOException {
    if (client != null) {
      client.close();
    }
    if (peer != null) {
      peer.close();
    }
    if (proxy != null) {
      proxy.close();
    }
    server.close();
    nodes.close();
  }

  private void connect(BlockTokens tokens, long turned) throws IOException {
    proxy = new RecordingProxy((InetSocketAddress) server.getLocalAddress(), turned);
    client = SocketChannel.open(proxy.address());
    peer = new NamedPeer(server.accept().socket(), settings, nodes, null, tokens, OWN);
    welcome = Welcome.await(client, 10_000);
  }

  private static BlockToken of(Token<?> token) {
    return new BlockToken(token.getIdentifier(), token.getPassword());
  }

  private TapChannel tap(BlockToken with) throws IOException {
    return tap(
        with, new WritePlanner(settings, null, "peer", new PacketsInFlight(80, 65536), true));
  }

  private TapChannel tap(BlockToken with, Planner planner) throws IOException {
    CompletableFuture<Boolean> secured = CompletableFuture.supplyAsync(peer::hasSecureChannel);
    SealedWire wire = new SealedWire(SecureClient.handshake(client, welcome, with, MEANT, 10_000));
    assertTrue(secured.join());
    NamedWrites named =
        new NamedWrites(
            planner,
            (connection, write) -> {
              throw new AssertionError("nothing else can be done");
            });
    return new TapChannel(null, client, wire, named);
  }

  private byte[] stock(int dataNodes, Token<BlockTokenIdentifier> shown) throws IOException {
    ByteArrayOutputStream stock = new ByteArrayOutputStream();
    stock.write(
        StockBytes.writeHeader(
            dataNodes,
            dataNodes,
            BlockConstructionStage.PIPELINE_SETUP_CREATE,
            "client",
            shown,
            128L << 20));
    long offset = 0;
    for (int i = 0; i < PACKETS; i++) {
      // Full segments first, then packets that were cut elsewhere.
      int length = i < PACKETS / 2 ? StockBytes.SEGMENT : 1 + random.nextInt(50_000);
      stock.write(StockBytes.packet(offset, i, false, StockBytes.random(random, length)));
      offset += length;
    }
    stock.write(StockBytes.packet(offset, PACKETS, true, new byte[0]));
    return stock.toByteArray();
  }

  private CompletableFuture<byte[]> readBy(NamedPeer reader, int length) {
    return CompletableFuture.supplyAsync(
        () -> {
          try {
            return reader.getInputStream().readNBytes(length);
          } catch (IOException e) {
            throw new IllegalStateException(e);
          }
        });
  }

  private void write(TapChannel tap, byte[] stock) throws IOException {
    ByteBuffer in = ByteBuffer.wrap(stock);
    while (in.hasRemaining()) {
      in.limit(Math.min(stock.length, in.position() + 1 + random.nextInt(100_000)));
      tap.write(in);
      in.limit(stock.length);
    }
  }

  private void comesThrough(int dataNodes) throws Exception {
    byte[] stock = stock(dataNodes, token);
    try (TapChannel tap = tap(of(token))) {
      CompletableFuture<byte[]> read = readBy(peer, stock.length);
      write(tap, stock);
      assertArrayEquals(stock, read.get(60, TimeUnit.SECONDS));

      ByteArrayOutputStream answers = new ByteArrayOutputStream();
      answers.write(StockBytes.writeAnswer());
      for (int i = 0; i <= PACKETS; i++) {
        answers.write(StockBytes.ack(i, Status.SUCCESS, Status.SUCCESS, Status.SUCCESS));
      }
      for (byte[] part : new byte[][] {answers.toByteArray(), StockBytes.random(random, 40_000)}) {
        peer.getOutputStream().write(part);
        ByteBuffer back = ByteBuffer.allocate(part.length);
        while (back.hasRemaining()) {
          assertTrue(tap.read(back) > 0);
        }
        assertArrayEquals(part, back.array());
      }
    }
    assertTrue(proxy.saw(token.getIdentifier()), "the identifier goes ahead, as in stock SASL");
    assertFalse(proxy.saw(token.getPassword()));
    for (int at = 400; at < stock.length - 20; at += stock.length / 40) {
      assertFalse(proxy.saw(Arrays.copyOfRange(stock, at, at + 16)), "bytes at " + at);
    }
  }

  @Test
  void aWriteByNameIsReadBack() throws Exception {
    long published = stats.value(Counter.BYTES_PUBLISHED);
    long pulled = stats.value(Counter.BYTES_PULLED);
    long inline = stats.value(Counter.BYTES_INLINE);
    connect(BlockTokensTest.of(keys), -1);
    comesThrough(3);
    assertTrue(stats.value(Counter.BYTES_PUBLISHED) - published > 1_000_000);
    assertEquals(
        stats.value(Counter.BYTES_PUBLISHED) - published,
        stats.value(Counter.BYTES_PULLED) - pulled);
    assertEquals(inline, stats.value(Counter.BYTES_INLINE));
    assertTrue(proxy.passed() < 200_000, "bodies go by name");
  }

  /** Nobody would share it, but stock code has left its own protection out already. */
  @Test
  void aWriteToOneReplicaGoesOnTheConnection() throws Exception {
    long inline = stats.value(Counter.BYTES_INLINE);
    connect(BlockTokensTest.of(keys), -1);
    comesThrough(1);
    assertTrue(stats.value(Counter.BYTES_INLINE) - inline > 1_000_000);
  }

  /**
   * What a writer publishes with under whose names a forger publishes in its place, always: the
   * right lengths, checksums and names, and another key.
   */
  private static Publisher forged(PublishedSegments kept, long forger) {
    Publisher own = kept.publisher();
    byte[] header = new byte[SegmentHeader.BYTES];
    return new SilentPublisher() {
      @Override
      public void block(
          long segment,
          Piece piece,
          byte[] body,
          int off,
          boolean more,
          byte[] digests,
          int digestAt)
          throws IOException {
        own.block(segment, piece, body, off, more, digests, digestAt);
        piece.header().encode(header);
        Native.producerPublish(
            forger,
            segment,
            header,
            body,
            off + piece.sumsAt(),
            piece.sumsLength(),
            off + piece.dataAt(),
            piece.dataLength(),
            more,
            digests,
            digestAt);
      }

      @Override
      public void stream(
          long segment,
          Piece piece,
          byte[] body,
          int off,
          boolean more,
          byte[] digests,
          int digestAt)
          throws IOException {
        own.stream(segment, piece, body, off, more, digests, digestAt);
      }

      @Override
      public boolean kept(boolean block, long segment, Piece piece, byte[] body)
          throws IOException {
        return own.kept(block, segment, piece, body);
      }

      @Override
      public void starved() {
        own.starved();
      }
    };
  }

  /** The worst that a forger can do: the bodies go on the secure connection. */
  @Test
  void aForgerDoesNotEndTheWrite() throws Exception {
    long asked = stats.value(Counter.INLINE_ASKED);
    long pulled = stats.value(Counter.BYTES_PULLED);
    WriteKey key = new WriteKey(NativeSecurity.keyDraw());
    Preamble preamble = new Preamble(PublishedSegments.PREAMBLE.name(), 5, StockBytes.SEGMENT, key);
    PublishedSegments kept = new PublishedSegments();
    long forger =
        Native.producerOpen(
            nodes.reads().handle(),
            Names.segments(preamble.name(), key.bytes()),
            preamble.segmentBytes(),
            256,
            NativeSecurity.keyDraw(),
            0);
    connect(BlockTokensTest.of(keys), -1);
    byte[] stock = stock(3, token);
    try (TapChannel tap =
        tap(of(token), op -> new Plan.Produce(preamble, forged(kept, forger), 0))) {
      CompletableFuture<byte[]> read = readBy(peer, stock.length);
      byte[] answer = StockBytes.writeAnswer();
      CompletableFuture<byte[]> answered =
          CompletableFuture.supplyAsync(
              () -> {
                ByteBuffer back = ByteBuffer.allocate(answer.length);
                try {
                  while (back.hasRemaining()) {
                    tap.read(back);
                  }
                } catch (IOException e) {
                  throw new IllegalStateException(e);
                }
                return back.array();
              });
      write(tap, stock);
      assertArrayEquals(stock, read.get(60, TimeUnit.SECONDS));
      peer.getOutputStream().write(answer);
      assertArrayEquals(answer, answered.get(20, TimeUnit.SECONDS));
    } finally {
      Native.producerClose(forger, 0);
    }
    assertEquals(asked + 1, stats.value(Counter.INLINE_ASKED));
    assertEquals(1, kept.starved());
    assertEquals(pulled, stats.value(Counter.BYTES_PULLED), "nothing forged was taken");
    for (int at = 400; at < stock.length - 20; at += stock.length / 40) {
      assertFalse(proxy.saw(Arrays.copyOfRange(stock, at, at + 16)), "bytes at " + at);
    }
  }

  private void refused(Class<? extends Throwable> why) {
    assertFalse(peer.hasSecureChannel());
    InputStream in = peer.getInputStream();
    assertThrows(why, in::read);
    assertThrows(why, in::read, "and again");
  }

  private void handshakeFails(BlockTokens tokens, BlockToken with) throws Exception {
    long before = stats.value(Counter.HANDSHAKES_REFUSED);
    connect(tokens, -1);
    CompletableFuture<Void> refused =
        CompletableFuture.runAsync(
            () -> {
              refused(InvalidToken.class);
              try {
                // As stock code does then.
                peer.close();
              } catch (IOException e) {
                throw new IllegalStateException(e);
              }
            });
    assertThrows(
        IOException.class, () -> SecureClient.handshake(client, welcome, with, meant, 10_000));
    refused.get(20, TimeUnit.SECONDS);
    assertEquals(before + 1, stats.value(Counter.HANDSHAKES_REFUSED));
  }

  @Test
  void anotherPasswordIsRefused() throws Exception {
    byte[] guess = token.getPassword().clone();
    guess[0] ^= 1;
    handshakeFails(BlockTokensTest.of(keys), new BlockToken(token.getIdentifier(), guess));
  }

  @Test
  void aChangedIdentifierIsRefused() throws Exception {
    byte[] more = token.getIdentifier().clone();
    more[more.length - 1] ^= 1;
    handshakeFails(BlockTokensTest.of(keys), new BlockToken(more, token.getPassword()));
  }

  @Test
  void whatIsNoIdentifierIsRefused() throws Exception {
    byte[] noise = StockBytes.random(random, BlockToken.MAX_IDENTIFIER_BYTES);
    handshakeFails(BlockTokensTest.of(keys), new BlockToken(noise, token.getPassword()));
  }

  @Test
  void aDataNodeWithoutTokensRefusesAll() throws Exception {
    handshakeFails(null, of(token));
  }

  /** Who would answer in the DataNode's place has not the password. */
  @Test
  void aLiarIsNotBelieved() throws Exception {
    connect(null, -1);
    CompletableFuture<Void> liar =
        CompletableFuture.runAsync(
            () -> {
              try {
                peer.getOutputStream().write(new byte[SecureHello.MESSAGE_BYTES]);
              } catch (IOException e) {
                throw new IllegalStateException(e);
              }
            });
    assertThrows(
        IOException.class, () -> SecureClient.handshake(client, welcome, of(token), MEANT, 10_000));
    liar.get(20, TimeUnit.SECONDS);
  }

  /** Who stands in the place of a DataNode has another one answer: that one knows the password. */
  @Test
  void aHandshakeThatIsPassedOnToAnotherDataNodeIsRefused() throws Exception {
    for (String host : new String[] {"10.0.0.2", "192.0.2.1"}) {
      meant = new InetSocketAddress(host, 9866);
      handshakeFails(BlockTokensTest.of(keys), of(token));
      peer.close();
      proxy.close();
    }
    meant = new InetSocketAddress("10.0.0.1", 9867);
    handshakeFails(BlockTokensTest.of(keys), of(token));
  }

  /**
   * Who passes it on may say something else than the client did; the handshake is of what it said.
   */
  @Test
  void theDataNodeThatIsMeantCannotBeChangedOnTheWay() throws Exception {
    long before = stats.value(Counter.HANDSHAKES_REFUSED);
    connect(BlockTokensTest.of(keys), -1);
    try (SecureSession session =
        SecureSession.client(
            welcome, token.getPassword(), token.getIdentifier(), "10.0.0.2:9866")) {
      byte[] hello = new SecureHello(token.getIdentifier(), SAID, session.say()).encode();
      client.write(ByteBuffer.wrap(hello));
      refused(InvalidToken.class);
    }
    assertEquals(before + 1, stats.value(Counter.HANDSHAKES_REFUSED));
  }

  /** What somebody else once said to the DataNode opens nothing. */
  @Test
  void aHandshakeThatWasRecordedIsRefused() throws Exception {
    BlockTokens tokens = BlockTokensTest.of(keys);
    connect(tokens, -1);
    byte[] recorded;
    try (SecureSession session =
        SecureSession.client(welcome, token.getPassword(), token.getIdentifier(), SAID)) {
      recorded = new SecureHello(token.getIdentifier(), SAID, session.say()).encode();
    }
    client.close();
    peer.close();
    proxy.close();
    connect(tokens, -1);
    client.write(ByteBuffer.wrap(recorded));
    assertFalse(peer.hasSecureChannel());
    refused(InvalidToken.class);
  }

  /** Its end is the end of the client's first message: no thread may go round for what follows. */
  @Test
  void whoSaysMoreThanAHandshakeIsRefused() throws Exception {
    connect(BlockTokensTest.of(keys), -1);
    try (SecureSession session =
        SecureSession.client(welcome, token.getPassword(), token.getIdentifier(), SAID)) {
      byte[] hello = new SecureHello(token.getIdentifier(), SAID, session.say()).encode();
      client.write(ByteBuffer.wrap(Arrays.copyOf(hello, hello.length + 1)));
      CompletableFuture<Void> ended =
          CompletableFuture.runAsync(
              () -> {
                assertFalse(peer.hasSecureChannel());
                refused(IOException.class);
              });
      ended.get(20, TimeUnit.SECONDS);
    }
  }

  /** Whoever has only shaken hands is not waited for as long as stock code would. */
  @Test
  void stockCodesPatienceIsNotForStrangers() throws Exception {
    connect(BlockTokensTest.of(keys), -1);
    peer.setReadTimeout(3_600_000);
    assertEquals(NamedInput.HANDSHAKE_MS, peer.patienceMs());
    byte[] stock = stock(3, token);
    CompletableFuture<byte[]> read;
    try (TapChannel tap = tap(of(token))) {
      assertEquals(NamedInput.HANDSHAKE_MS, peer.patienceMs());
      read = readBy(peer, 16);
      write(tap, stock);
      read.get(20, TimeUnit.SECONDS);
      assertEquals(3_600_000, peer.patienceMs());
    }
  }

  @Test
  void whoSaysNothingIsNotWaitedFor() throws Exception {
    connect(BlockTokensTest.of(keys), -1);
    assertThrows(
        IOException.class, () -> SecureClient.handshake(client, welcome, of(token), MEANT, 50));
  }

  @Test
  void aConnectionThatIsNotSecuredIsRefused() throws Exception {
    connect(BlockTokensTest.of(keys), -1);
    client.write(ByteBuffer.wrap(new Preamble("/hadoop/blocks/p/1/v=1", 1, 512).encode()));
    refused(IOException.class);
  }

  @Test
  void aHeaderWithAnotherTokenIsRefused() throws Exception {
    connect(BlockTokensTest.of(keys), -1);
    byte[] stock = stock(3, BlockTokensTest.token(keys, 2));
    try (TapChannel tap = tap(of(token))) {
      tap.write(ByteBuffer.wrap(stock, 0, 2000));
      assertThrows(IOException.class, () -> peer.getInputStream().read());
    }
  }

  /** Whatever bit is turned on the way, not a byte is delivered that was not written. */
  @Test
  void aConnectionThatIsTamperedWithEnds() throws Exception {
    int hello = new SecureHello(token.getIdentifier(), SAID, new byte[48]).encode().length;
    for (int at : new int[] {0, 1, 2, 40, 1500}) {
      connect(BlockTokensTest.of(keys), hello + at);
      byte[] stock = stock(1, token);
      try (TapChannel tap = tap(of(token))) {
        write(tap, Arrays.copyOf(stock, 100_000));
        client.shutdownOutput();
        ByteArrayOutputStream read = new ByteArrayOutputStream();
        assertThrows(
            IOException.class,
            () -> {
              byte[] part = new byte[1000];
              int count;
              while ((count = peer.getInputStream().read(part)) > 0) {
                read.write(part, 0, count);
              }
              throw new IOException("ended");
            });
        assertArrayEquals(Arrays.copyOf(stock, read.size()), read.toByteArray());
        assertTrue(read.size() < 100_000);
      }
      peer.close();
      proxy.close();
    }
  }
}

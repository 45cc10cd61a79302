package io.trunkline.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.RecordingProxy;
import io.trunkline.hadoop.StockBytes;
import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.ndn.Native;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.ndn.secure.SealedWire;
import io.trunkline.hadoop.ndn.secure.SecureClient;
import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.ndn.wire.Welcome;
import io.trunkline.hadoop.ndn.write.NamedWrites;
import io.trunkline.hadoop.ndn.write.PacketsInFlight;
import io.trunkline.hadoop.ndn.write.WritePlanner;
import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.tap.TapChannel;
import io.trunkline.hadoop.transport.DataNodeRecord;
import io.trunkline.hadoop.wire.BlockToken;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.DFSTestUtil;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.BlockOpResponseProto;
import org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.Status;
import org.apache.hadoop.hdfs.security.token.block.BlockTokenIdentifier;
import org.apache.hadoop.hdfs.security.token.block.BlockTokenIdentifier.AccessMode;
import org.apache.hadoop.hdfs.security.token.block.BlockTokenSecretManager;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.security.token.Token;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Attacks on clusters, by whoever is on the named network or has a right to something else; each
 * test is named after what is tried. Who answers for DataNodes is in {@link HostileRecordsTest},
 * caches with other bytes in {@link RouterTest}, a wrong handshake in SecurePeerTest; docs/security
 * has the list.
 */
@Timeout(300)
@TestInstance(Lifecycle.PER_CLASS)
class AdversaryTest {
  private static final byte[] DATA = TestCluster.data(7, 10 << 20);
  private static final int LIMIT_MS = 20_000;

  /** How long the token lives that expires while its connection is open, in milliseconds. */
  private static final int BRIEF_MS = 4000;

  private TestRouter router;
  private TestCluster cluster;
  private NdnNode attacker;
  private long nextBlock = 1L << 40;

  /** The attacker has a face of its own, as any host of the network may. */
  @BeforeAll
  void start() throws IOException {
    router = new TestRouter();
    Configuration conf = SecuredClustersTest.tokens();
    conf.set("trunkline.ndn.face", router.face());
    cluster = new TestCluster(conf, 3);
    Configuration other = new Configuration(conf);
    other.setInt("trunkline.ndn.window.segments", 61);
    attacker = NdnNode.acquire(Settings.from(other), null);
  }

  @AfterAll
  void stop() {
    attacker.close();
    cluster.close();
    router.close();
  }

  @BeforeEach
  void reset() {
    cluster.reset();
  }

  private DataNode dataNode() {
    return cluster.mini().getDataNodes().get(0);
  }

  private static InetSocketAddress plugin(NdnNode node, DataNode dataNode) throws IOException {
    String name = node.names().dataNode(dataNode.getXferAddress()).get(0);
    byte[] record = Native.fetch(node.handle(), name, true, true, false, LIMIT_MS);
    return new InetSocketAddress(
        InetAddress.getLoopbackAddress(), DataNodeRecord.decode(record).port());
  }

  /** A block that nobody has. */
  private ExtendedBlock newBlock() {
    String pool = cluster.mini().getNamesystem().getBlockPoolId();
    return new ExtendedBlock(pool, nextBlock++, 0, 1001);
  }

  /** A token as the NameNode makes them. */
  private Token<BlockTokenIdentifier> token(ExtendedBlock block, AccessMode mode, long lifetimeMs)
      throws IOException {
    BlockTokenSecretManager keys =
        new BlockTokenSecretManager(600_000, lifetimeMs, block.getBlockPoolId(), null, false);
    keys.addKeys(cluster.mini().getNameNodeRpc().getBlockKeys());
    return keys.generateToken(
        "somebody",
        block,
        EnumSet.of(mode),
        new StorageType[] {StorageType.DISK},
        new String[] {"storage0"});
  }

  /** A connection to the plug-in that has been secured by a token. */
  private TapChannel secured(Token<BlockTokenIdentifier> token) throws IOException {
    SocketChannel channel = SocketChannel.open(plugin(attacker, dataNode()));
    try {
      Welcome welcome = Welcome.await(channel, LIMIT_MS);
      BlockToken secret = new BlockToken(token.getIdentifier(), token.getPassword());
      InetSocketAddress meant = dataNode().getXferAddress();
      SealedWire wire =
          new SealedWire(SecureClient.handshake(channel, welcome, secret, meant, LIMIT_MS));
      WritePlanner planner =
          new WritePlanner(attacker.settings(), null, "dn", new PacketsInFlight(80, 65536), true);
      NamedWrites writes =
          new NamedWrites(
              planner,
              (connection, write) -> {
                throw new AssertionError("it is a write");
              });
      return new TapChannel(null, channel, wire, writes);
    } catch (IOException | RuntimeException e) {
      channel.close();
      throw e;
    }
  }

  /** What stock code answers to the header of a write. */
  private static Status answer(TapChannel tap, byte[] header) throws IOException {
    ByteBuffer out = ByteBuffer.wrap(header);
    while (out.hasRemaining()) {
      tap.write(out);
    }
    InputStream in =
        new InputStream() {
          @Override
          public int read() throws IOException {
            ByteBuffer one = ByteBuffer.allocate(1);
            return tap.read(one) < 1 ? -1 : one.get(0) & 0xFF;
          }
        };
    return BlockOpResponseProto.parseDelimitedFrom(in).getStatus();
  }

  private Status tries(ExtendedBlock block, Token<BlockTokenIdentifier> token) throws IOException {
    try (TapChannel tap = secured(token)) {
      return answer(tap, StockBytes.writeHeader(block, token));
    }
  }

  private void refused(ExtendedBlock block, Token<BlockTokenIdentifier> token) throws IOException {
    assertEquals(Status.ERROR_ACCESS_TOKEN, tries(block, token));
    nothingWritten(block);
  }

  private void nothingWritten(ExtendedBlock block) {
    for (DataNode each : cluster.mini().getDataNodes()) {
      assertFalse(each.getFSDataset().contains(block));
    }
    assertEquals(0, cluster.count(Counter.BYTES_PULLED));
  }

  /** Without this one the others show nothing. */
  @Test
  void whoHasTheTokenWrites() throws Exception {
    ExtendedBlock block = newBlock();
    assertEquals(Status.SUCCESS, tries(block, token(block, AccessMode.WRITE, 600_000)));
    assertTrue(dataNode().getFSDataset().contains(block));
  }

  @Test
  void writesAnotherBlockWithItsToken() throws Exception {
    ExtendedBlock own = newBlock();
    refused(newBlock(), token(own, AccessMode.WRITE, 600_000));
  }

  @Test
  void writesWithATokenToRead() throws Exception {
    ExtendedBlock block = newBlock();
    refused(block, token(block, AccessMode.READ, 600_000));
  }

  /** It was good for the handshake. */
  @Test
  void writesWithATokenThatHasExpiredMeanwhile() throws Exception {
    ExtendedBlock block = newBlock();
    Token<BlockTokenIdentifier> token = token(block, AccessMode.WRITE, BRIEF_MS);
    long expires = token.decodeIdentifier().getExpiryDate();
    try (TapChannel tap = secured(token)) {
      while (System.currentTimeMillis() <= expires) {
        TimeUnit.MILLISECONDS.sleep(20);
      }
      byte[] header = StockBytes.writeHeader(block, token);
      assertEquals(Status.ERROR_ACCESS_TOKEN, answer(tap, header));
    }
    nothingWritten(block);
  }

  @Test
  void connectsWithATokenThatHasExpired() throws Exception {
    ExtendedBlock block = newBlock();
    assertThrows(IOException.class, () -> secured(token(block, AccessMode.WRITE, -1000)));
    assertEquals(1, cluster.count(Counter.HANDSHAKES_REFUSED));
    nothingWritten(block);
  }

  @Test
  void writesWithoutAHandshake() throws Exception {
    ExtendedBlock block = newBlock();
    Token<BlockTokenIdentifier> token = token(block, AccessMode.WRITE, 600_000);
    String name =
        attacker
            .names()
            .version(block.getBlockPoolId(), block.getBlockId(), block.getGenerationStamp());
    try (SocketChannel channel = SocketChannel.open(plugin(attacker, dataNode()))) {
      Welcome.await(channel, LIMIT_MS);
      channel.write(ByteBuffer.wrap(new Preamble(name, 1, 64512).encode()));
      channel.write(ByteBuffer.wrap(StockBytes.writeHeader(block, token)));
      assertClosed(channel);
    }
    nothingWritten(block);
  }

  /** The end of a connection, whichever way it is told. */
  private static void assertClosed(SocketChannel channel) {
    try {
      assertEquals(-1, channel.read(ByteBuffer.allocate(1)));
    } catch (IOException e) {
      return; // by a reset
    }
  }

  @Test
  void readsABlockWithoutAToken() throws Exception {
    cluster.write("/secret", DATA);
    ExtendedBlock block =
        DFSTestUtil.getAllBlocks(cluster.fs(), new Path("/secret")).get(0).getBlock();
    String pool = block.getBlockPoolId();
    String metadata = attacker.names().metadata(pool, block.getBlockId());
    assertNull(Native.blockMetadata(attacker.handle(), metadata, new byte[1][], 2000));
    new Stranger(router).getsNothing(block);
  }

  /** What a router answers in the writer's place, for each segment and each time it is asked. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void answersForTheSegmentsOfAWrite(boolean secured) throws Exception {
    try (TestRouter router = new TestRouter();
        LyingRouter liar =
            new LyingRouter(
                new InetSocketAddress("127.0.0.1", URI.create(router.face()).getPort()))) {
      Configuration lied = secured ? SecuredClustersTest.tokens() : TestCluster.conf();
      lied.set("trunkline.ndn.face", liar.face());
      // Within a block: to Hadoop 3.5 the next one begins with a packet so small that a liar passes
      // it.
      byte[] data = Arrays.copyOf(DATA, 7 << 20);
      try (TestCluster deceived = new TestCluster(lied, 3, ownForwarders())) {
        deceived.write("/forged", data);
        assertTrue(liar.lies() > 0, "somebody has been lied to");
        assertTrue(deceived.count(Counter.NAMED_WRITES) > 0);
        assertTrue(deceived.count(Counter.INLINE_ASKED) > 0);
        assertEquals(0, deceived.count(Counter.BYTES_PULLED), "nothing of it was taken");
        deceived.check("/forged", data, 3);
      }
    }
  }

  /** Where the last byte of the content lies in the answer with a content key. */
  private static int contentKey(byte[] packet) {
    String text = new String(packet, StandardCharsets.ISO_8859_1);
    // SignatureInfo with SignatureType 200, and a SignatureValue of nothing: no Interest has them.
    String unsigned = "\u0016\u0003\u001b\u0001\u00c8\u0017\u0000";
    boolean key = text.contains("content-key") && text.endsWith(unsigned);
    return key ? packet.length - unsigned.length() - 1 : LyingRouter.NONE;
  }

  /**
   * A reader takes no key that was not made with its token's password. With block tokens alone it
   * then reads by the stock port, where token and data go as stock HDFS has them: in the clear.
   */
  @Test
  void answersForContentKeys() throws Exception {
    try (TestRouter router = new TestRouter();
        LyingRouter liar =
            new LyingRouter(
                new InetSocketAddress("127.0.0.1", URI.create(router.face()).getPort()),
                AdversaryTest::contentKey)) {
      Configuration lied = SecuredClustersTest.tokens();
      lied.set("trunkline.ndn.face", liar.face());
      try (TestCluster deceived = new TestCluster(lied, 3, ownForwarders())) {
        deceived.write("/keys", DATA);
        long stock = TransferStats.get().connectionsOpened("tcp");
        assertArrayEquals(DATA, deceived.read("/keys"));
        assertTrue(liar.lies() >= 3, "it is asked more than once");
        assertEquals(0, deceived.count(Counter.BYTES_READ), "nothing by name");
        assertTrue(deceived.count(Fallback.NO_CONTENT_KEY) >= 2, "both blocks");
        assertTrue(TransferStats.get().connectionsOpened("tcp") > stock, "to the stock port");
      }
    }
  }

  /** Forwarders are shared by whoever has the same settings. */
  private static Configuration[] ownForwarders() {
    Configuration[] own = new Configuration[3];
    for (int i = 0; i < own.length; i++) {
      own[i] = new Configuration(false);
      own[i].setInt("trunkline.ndn.window.segments", 33 + i);
    }
    return own;
  }

  /**
   * The attacker answers for a DataNode that has no plug-in, and passes all on to another one,
   * which knows the token's password.
   */
  @Test
  void passesTheHandshakeOnToAnotherDataNode() throws Exception {
    Configuration relayed = SecuredClustersTest.tokens();
    Configuration silent = new Configuration(false);
    silent.set("trunkline.transport", "tcp");
    try (TestRouter router = new TestRouter()) {
      relayed.set("trunkline.ndn.face", router.face());
      Configuration[] own = ownForwarders();
      own[0] = silent;
      try (TestCluster misled = new TestCluster(relayed, 3, own);
          NdnNode relay = NdnNode.acquire(Settings.from(relayed), null)) {
        DataNode victim = misled.mini().getDataNodes().get(0);
        InetSocketAddress behind = plugin(relay, misled.mini().getDataNodes().get(1));
        try (RecordingProxy proxy = new RecordingProxy(behind, -1)) {
          byte[] record =
              new DataNodeRecord(Preamble.VERSION, true, "", proxy.address().getPort(), "", true)
                  .encode();
          String name = relay.names().dataNode(victim.getXferAddress()).get(0);
          Native.publishStatic(relay.handle(), name, record, 60_000);
          for (int i = 0; i < 30 && misled.count(Counter.HANDSHAKES_REFUSED) == 0; i++) {
            misled.write("/relayed" + i, DATA);
            misled.check("/relayed" + i, DATA, 3);
          }
          assertTrue(proxy.passed() > 0, "the relay was gone to");
        }
        assertTrue(misled.count(Counter.HANDSHAKES_REFUSED) > 0);
        assertTrue(misled.count(Fallback.HANDSHAKE) > 0);
      }
    }
  }

  /** With block tokens alone stock code protects nothing: what is not published stays secured. */
  @Test
  void waitsForAWriteThatCannotBePublished() throws Exception {
    Configuration unchecked = new Configuration(cluster.fs().getConf());
    unchecked.set("dfs.checksum.type", "NULL");
    long stock = TransferStats.get().connectionsOpened("tcp");
    try (var fs = org.apache.hadoop.fs.FileSystem.newInstance(cluster.fs().getUri(), unchecked);
        var out = fs.create(new Path("/unpublished"))) {
      out.write(DATA);
    }
    assertTrue(cluster.count(Fallback.CHECKSUM_KIND) > 0);
    assertEquals(stock, TransferStats.get().connectionsOpened("tcp"), "to the stock port");
    assertTrue(cluster.count(Counter.BYTES_INLINE) >= DATA.length);
    assertTrue(cluster.count(Counter.SECURED_CONNECTIONS) > 0);
    cluster.check("/unpublished", DATA, 3);
  }
}

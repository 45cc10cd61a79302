package io.trunkline.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.trunkline.hadoop.RecordingProxy;
import io.trunkline.hadoop.StockBytes;
import io.trunkline.hadoop.TrunklineTrustedChannelResolver;
import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.ndn.Native;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.transport.DataNodeRecord;
import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketException;
import java.net.URI;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Deque;
import java.util.EnumSet;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.DFSTestUtil;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.hdfs.security.token.block.BlockTokenIdentifier;
import org.apache.hadoop.hdfs.security.token.block.BlockTokenIdentifier.AccessMode;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.security.SecurityUtil;
import org.apache.hadoop.security.token.Token;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Stock clusters with block tokens, SASL and encryption: what goes by name stays secured. */
@Timeout(300)
class SecuredClustersTest {
  private static final byte[] DATA = TestCluster.data(1, 20 << 20);

  static Configuration tokens() {
    Configuration conf = TestCluster.conf();
    conf.setBoolean("dfs.block.access.token.enable", true);
    return conf;
  }

  static Configuration encrypted() {
    Configuration conf = tokens();
    conf.setBoolean("dfs.encrypt.data.transfer", true);
    conf.set("dfs.encrypt.data.transfer.cipher.suites", "AES/CTR/NoPadding");
    conf.set("dfs.trustedchannel.resolver.class", TrunklineTrustedChannelResolver.class.getName());
    return conf;
  }

  private static void putGoesByName(TestCluster cluster) throws Exception {
    cluster.reset();
    cluster.write("/put", DATA);
    assertEquals(3, cluster.count(Counter.NAMED_WRITES));
    assertEquals(9, cluster.count(Counter.NAMED_RECEIVES));
    assertEquals(6, cluster.count(Counter.NAMED_RELAYS));
    assertTrue(cluster.count(Counter.BYTES_PUBLISHED) >= DATA.length);
    assertEquals(3 * cluster.count(Counter.BYTES_PUBLISHED), cluster.count(Counter.BYTES_PULLED));
    assertEquals(0, cluster.count(Counter.BYTES_INLINE));
    assertEquals(18, cluster.count(Counter.SECURED_CONNECTIONS), "both ends of three hops");
    assertEquals(0, cluster.count(Counter.HANDSHAKES_REFUSED));
    assertEquals(0, cluster.allFallbacks());
    cluster.check("/put", DATA, 3);
    assertEquals(3, cluster.count(Counter.NAMED_READS));
    assertEquals(DATA.length, cluster.count(Counter.BYTES_READ));
    assertEquals(0, cluster.count(Counter.READERS_REFUSED));
    assertEquals(0, cluster.allFallbacks());
  }

  /** What else HDFS does to files, by whatever way. */
  private static void allElseWorks(TestCluster cluster) throws Exception {
    assertNotNull(cluster.fs().getFileChecksum(new Path("/put")));
    byte[] data = Arrays.copyOf(DATA, 3_000_000);
    Path path = new Path("/append");
    try (FSDataOutputStream out = cluster.fs().create(path)) {
      out.write(data, 0, 1_000_003);
      out.hflush();
      assertArrayEquals(Arrays.copyOf(data, 1_000_003), cluster.read("/append"));
      out.write(data, 1_000_003, 500_000);
    }
    try (FSDataOutputStream out = cluster.append(path)) {
      out.write(data, 1_500_003, data.length - 1_500_003);
    }
    cluster.check("/append", data, 3);
    try (FSDataOutputStream out =
        cluster.fs().create(new Path("/one"), true, 4096, (short) 1, TestCluster.BLOCK_BYTES)) {
      out.write(data);
    }
    cluster.check("/one", data, 1);
    assertEquals(0, cluster.count(Fallback.HANDSHAKE));
  }

  private static void severalWriteAtOnce(TestCluster cluster) throws Exception {
    cluster.reset();
    ExecutorService pool = Executors.newFixedThreadPool(6);
    try {
      List<Future<?>> writes = new ArrayList<>();
      for (int i = 0; i < 6; i++) {
        byte[] data = TestCluster.data(100 + i, 10 << 20);
        String path = "/many" + i;
        writes.add(
            pool.submit(
                () -> {
                  cluster.write(path, data);
                  return null;
                }));
      }
      for (Future<?> write : writes) {
        write.get(200, TimeUnit.SECONDS);
      }
    } finally {
      pool.shutdownNow();
    }
    assertEquals(12, cluster.count(Counter.NAMED_WRITES));
    assertEquals(0, cluster.count(Counter.BYTES_INLINE));
    assertEquals(0, cluster.allFallbacks());
    for (int i = 0; i < 6; i++) {
      cluster.check("/many" + i, TestCluster.data(100 + i, 10 << 20), 3);
    }
  }

  /** Another one takes its place, and is brought what there is by stock means. */
  private static void aDataNodeDiesInTheMiddle(TestCluster cluster) throws Exception {
    byte[] data = Arrays.copyOf(DATA, 7 << 20);
    try (FSDataOutputStream out = cluster.fs().create(new Path("/dies"))) {
      out.write(data, 0, 3 << 20);
      out.hflush();
      cluster.stopInPipeline(out, 1);
      out.write(data, 3 << 20, 4 << 20);
    }
    cluster.check("/dies", data, 3);
  }

  @Test
  void blockTokensAlone() throws Exception {
    try (TestCluster cluster = new TestCluster(tokens(), 4)) {
      putGoesByName(cluster);
      allElseWorks(cluster);
      aDataNodeDiesInTheMiddle(cluster);
    }
  }

  /** Clients often know nothing of tokens, but that blocks come with one. */
  @Test
  void aClientThatKnowsNothingOfTokens() throws Exception {
    try (TestCluster cluster = new TestCluster(tokens(), 3)) {
      Configuration unaware = new Configuration(cluster.fs().getConf());
      unaware.unset("dfs.block.access.token.enable");
      try (var fs = org.apache.hadoop.fs.FileSystem.newInstance(cluster.fs().getUri(), unaware)) {
        try (FSDataOutputStream out = fs.create(new Path("/unaware"))) {
          out.write(DATA);
        }
        assertEquals(0, cluster.allFallbacks());
        assertEquals(3, cluster.count(Counter.NAMED_WRITES));
        try (var in = fs.open(new Path("/unaware"))) {
          assertArrayEquals(DATA, in.readAllBytes());
        }
        assertEquals(DATA.length, cluster.count(Counter.BYTES_READ));
        assertEquals(0, cluster.allFallbacks());
      }
    }
  }

  @Test
  void encryption() throws Exception {
    try (TestCluster cluster = new TestCluster(encrypted(), 4)) {
      putGoesByName(cluster);
      allElseWorks(cluster);
      severalWriteAtOnce(cluster);
      aDataNodeDiesInTheMiddle(cluster);
    }
  }

  /** A router, and whoever listens at it, sees names and lengths. */
  @Test
  void whatPassesTheRouterIsSealed() throws Exception {
    try (TestRouter router = new TestRouter();
        RecordingProxy tap =
            new RecordingProxy(
                new InetSocketAddress(
                    InetAddress.getLoopbackAddress(), URI.create(router.face()).getPort()),
                -1)) {
      Configuration conf = encrypted();
      conf.set("trunkline.ndn.face", "tcp://127.0.0.1:" + tap.address().getPort());
      Configuration[] own = new Configuration[3];
      for (int i = 0; i < own.length; i++) {
        // Forwarders are shared by whoever has the same settings.
        own[i] = new Configuration(false);
        own[i].setInt("trunkline.ndn.window.segments", 33 + i);
      }
      try (TestCluster cluster = new TestCluster(conf, 3, own)) {
        cluster.write("/sealed", DATA);
        assertEquals(0, cluster.allFallbacks());
        assertEquals(3, cluster.count(Counter.NAMED_WRITES));
        assertTrue(tap.passed() > 3L * DATA.length, tap.passed() + " bytes");
        cluster.check("/sealed", DATA, 3);
        assertEquals(DATA.length, cluster.count(Counter.BYTES_READ));
        assertEquals(0, cluster.allFallbacks());
        for (int at = 0; at < DATA.length; at += 4_000_037) {
          assertFalse(tap.saw(Arrays.copyOfRange(DATA, at, at + 12)), "bytes at " + at);
        }
      }
    }
  }

  /** Without the resolver stock code makes its own handshake, and all writes go by TCP. */
  @Test
  void encryptionWithoutTheResolver() throws Exception {
    Configuration conf = encrypted();
    conf.unset("dfs.trustedchannel.resolver.class");
    try (TestCluster cluster = new TestCluster(conf, 3)) {
      cluster.write("/stock", DATA);
      cluster.check("/stock", DATA, 3);
      assertEquals(0, cluster.count(Counter.NAMED_WRITES));
      assertTrue(cluster.count(Fallback.NO_RESOLVER) > 0);
      assertEquals(DATA.length, cluster.count(Counter.BYTES_READ), "reads need none");
    }
  }

  /** A client may not know that data is encrypted: the NameNode says so. */
  @Test
  void aClientThatKnowsNothingOfEncryption() throws Exception {
    try (TestCluster cluster = new TestCluster(encrypted(), 3)) {
      Configuration unaware = new Configuration(cluster.fs().getConf());
      unaware.unset("dfs.encrypt.data.transfer");
      unaware.unset("dfs.block.access.token.enable");
      unaware.unset("dfs.trustedchannel.resolver.class");
      try (var fs = org.apache.hadoop.fs.FileSystem.newInstance(cluster.fs().getUri(), unaware);
          FSDataOutputStream out = fs.create(new Path("/unaware"))) {
        out.write(DATA);
      }
      assertEquals(0, cluster.count(Counter.NAMED_WRITES));
      assertTrue(cluster.count(Fallback.NO_RESOLVER) > 0);
      cluster.check("/unaware", DATA, 3);
    }
  }

  /** The NameNode says whether blocks need tokens, whatever a DataNode's own configuration says. */
  @Test
  void dataNodesThatWereNotToldOfTokensAnswerNobody() throws Exception {
    for (boolean secured : new boolean[] {false, true}) {
      Configuration untold = new Configuration(false);
      untold.setBoolean("dfs.block.access.token.enable", false);
      Configuration conf = secured ? tokens() : TestCluster.conf();
      try (TestCluster cluster = new TestCluster(conf, 3, untold, untold, untold)) {
        cluster.write("/untold", DATA);
        cluster.check("/untold", DATA, 3);
        ExtendedBlock block =
            DFSTestUtil.getAllBlocks(cluster.fs(), new Path("/untold")).get(0).getBlock();
        try (NdnNode node = NdnNode.acquire(Settings.from(cluster.fs().getConf()), null)) {
          String name = node.names().metadata(block.getBlockPoolId(), block.getBlockId());
          long[] told = Native.blockMetadata(node.handle(), name, new byte[1][], 2000);
          assertEquals(secured, told == null, "anybody may ask where there are no tokens");
        }
      }
    }
  }

  /** What a DataNode without the plug-in is sent has all of stock code's protection. */
  @Test
  void aDataNodeWithoutThePlugin() throws Exception {
    Configuration without = new Configuration(false);
    without.set("trunkline.transport", "tcp");
    Configuration with = new Configuration(false);
    try (TestCluster cluster = new TestCluster(encrypted(), 3, with, without, with)) {
      for (int i = 0; i < 3 || i < 30 && cluster.count(Counter.NAMED_RECEIVES) == 0; i++) {
        cluster.write("/mixed" + i, DATA);
        cluster.check("/mixed" + i, DATA, 3);
      }
      assertTrue(cluster.count(Fallback.NO_PLUGIN) > 0);
      assertTrue(cluster.count(Counter.NAMED_RECEIVES) > 0);
      assertEquals(0, cluster.count(Fallback.HANDSHAKE));
    }
  }

  /**
   * A client without the jar, a DataNode without it, and one whose plug-in is older: whoever speaks
   * to them does so by stock TCP. The DataNodes take nothing there that is not encrypted.
   */
  @Test
  void whoHasNoPluginOrAnOlderOne() throws Exception {
    byte[] data = Arrays.copyOf(DATA, 1_000_003);
    Configuration[] overlays = new Configuration[3];
    for (int i = 0; i < overlays.length; i++) {
      overlays[i] = new Configuration(false);
      overlays[i].set("trunkline.transport", i == 0 ? "ndn,tcp" : "tcp");
    }
    try (TestCluster cluster = new TestCluster(encrypted(), 3, overlays);
        NdnNode node = NdnNode.acquire(Settings.from(cluster.fs().getConf()), null)) {
      InetSocketAddress older = cluster.mini().getDataNodes().get(2).getXferAddress();
      byte[] record = new DataNodeRecord(Preamble.VERSION - 1, true, "", 1, "", true).encode();
      Native.publishStatic(node.handle(), node.names().dataNode(older).get(0), record, 60_000);

      Configuration bare = new HdfsConfiguration();
      for (String property :
          new String[] {
            "hadoop.rpc.socket.factory.class.default",
            "dfs.client.replica.accessor.builder.classes",
            "dfs.trustedchannel.resolver.class"
          }) {
        assertFalse(bare.getTrimmed(property, "").contains("trunkline"), property);
      }
      try (FileSystem stock = FileSystem.newInstance(cluster.fs().getUri(), bare)) {
        try (FSDataOutputStream out = stock.create(new Path("/bare"))) {
          out.write(data);
        }
        try (FSDataInputStream in = stock.open(new Path("/bare"))) {
          assertArrayEquals(data, in.readAllBytes());
        }
      }
      assertEquals(0, cluster.count(Counter.NAMED_WRITES));
      assertEquals(0, cluster.count(Counter.NAMED_READS));
      cluster.check("/bare", data, 3);
      assertEquals(data.length, cluster.count(Counter.BYTES_READ), "written by whoever it was");

      boolean all = false;
      for (int i = 0; i < 40 && !all; i++) {
        cluster.write("/mixed" + i, data);
        cluster.check("/mixed" + i, data, 3);
        all =
            cluster.count(Fallback.NO_PLUGIN) > 0
                && cluster.count(Fallback.OTHER_VERSION) > 0
                && cluster.count(Counter.NAMED_RECEIVES) > 0;
      }
      assertTrue(all, "the order of a pipeline is chance");
      assertEquals(0, cluster.count(Fallback.HANDSHAKE));
      assertEquals(0, cluster.count(Fallback.READ_FAILED));
      for (DataNode dataNode : cluster.mini().getDataNodes()) {
        takesNothingInPlain(dataNode, "/bare", cluster);
      }
    }
  }

  /** Not even a write that the token permits. */
  private static void takesNothingInPlain(DataNode dataNode, String path, TestCluster cluster)
      throws Exception {
    ExtendedBlock block = DFSTestUtil.getAllBlocks(cluster.fs(), new Path(path)).get(0).getBlock();
    ExtendedBlock other = new ExtendedBlock(block);
    other.setBlockId(block.getBlockId() + (1L << 40));
    Token<BlockTokenIdentifier> token =
        dataNode
            .getBlockPoolTokenSecretManager()
            .generateToken(
                other,
                EnumSet.of(AccessMode.WRITE),
                new StorageType[] {StorageType.DISK},
                new String[] {"storage0"});
    int port = dataNode.getXferAddress().getPort();
    try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
      socket.setSoTimeout(20_000);
      socket.getOutputStream().write(StockBytes.writeHeader(other, token));
      assertEquals(-1, socket.getInputStream().read(), "it hangs up");
    } catch (SocketException e) {
      // By a reset, as it has not read all.
      assertFalse(dataNode.getFSDataset().contains(other));
    }
    assertFalse(dataNode.getFSDataset().contains(other));
  }

  @ParameterizedTest
  @CsvSource({"authentication, false", "integrity, false", "privacy, false", "privacy, true"})
  void kerberos(String qop, boolean encrypted) throws Exception {
    try (TestKdc kdc = new TestKdc()) {
      Configuration conf = encrypted ? encrypted() : tokens();
      kdc.secure(conf, qop);
      try (TestCluster cluster = new TestCluster(conf, 3)) {
        putGoesByName(cluster);
        allElseWorks(cluster);
      }
    }
  }

  /**
   * The older way, by jsvc: who listens below port 1024 is root, so stock code does no handshake
   * there, whatever its configuration. By name each connection is secured by the block's token.
   */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void kerberosAndPortsOfRoot(boolean resolver) throws Exception {
    Configuration[] dataNodes = portsOfRoot(3);
    try (TestKdc kdc = new TestKdc()) {
      Configuration conf = tokens();
      kdc.login(conf);
      if (resolver) {
        conf.set(
            "dfs.trustedchannel.resolver.class", TrunklineTrustedChannelResolver.class.getName());
      }
      try (TestCluster cluster = new TestCluster(conf, dataNodes.length, dataNodes)) {
        for (DataNode dataNode : cluster.mini().getDataNodes()) {
          assertTrue(SecurityUtil.isPrivilegedPort(dataNode.getXferPort()));
        }
        putGoesByName(cluster);
        allElseWorks(cluster);
      }
    }
  }

  /**
   * DataNodes whose ports are below 1024; where this user may not have them, the test is skipped.
   */
  private static Configuration[] portsOfRoot(int count) throws IOException {
    Deque<Integer> free = new ArrayDeque<>();
    // Other versions of Hadoop may be tested beside, and take ports between this and the start.
    int first = ThreadLocalRandom.current().nextInt(600, 1000);
    for (int port = first; port < 1024 && free.size() < 2 * count; port++) {
      try (ServerSocket socket = new ServerSocket()) {
        socket.bind(new InetSocketAddress("127.0.0.1", port));
        free.add(port);
      } catch (BindException taken) {
        // The next one.
      }
    }
    assumeTrue(free.size() == 2 * count, "only root may listen below port 1024");
    Configuration[] dataNodes = new Configuration[count];
    for (int i = 0; i < count; i++) {
      dataNodes[i] = new Configuration(false);
      dataNodes[i].set("dfs.datanode.address", "127.0.0.1:" + free.remove());
      dataNodes[i].set("dfs.datanode.http.address", "127.0.0.1:" + free.remove());
      dataNodes[i].set("dfs.datanode.ipc.address", "127.0.0.1:0");
    }
    return dataNodes;
  }
}

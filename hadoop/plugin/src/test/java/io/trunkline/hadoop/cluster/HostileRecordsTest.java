package io.trunkline.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.TrunklineTrustedChannelResolver;
import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.mirror.TestController;
import io.trunkline.hadoop.ndn.Native;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.ndn.wire.SecureHello;
import io.trunkline.hadoop.ndn.wire.Welcome;
import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.transport.DataNodeRecord;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Three faces of strangers answer for every DataNode of a stock set-up, and are the first to do so:
 * no client goes where they send it, and none hands them a block token.
 */
@Timeout(300)
class HostileRecordsTest {
  private static final int STRANGERS = 3;
  private static final byte[] DATA = TestCluster.data(1, 10 << 20);

  private final TransferStats stats = TransferStats.get();
  private final AtomicInteger visits = new AtomicInteger();
  private final AtomicLong bytes = new AtomicLong();
  private final List<AutoCloseable> opened = new ArrayList<>();
  private volatile byte[] says = "SSH-2.0-OpenSSH_9.2\r\n".getBytes(StandardCharsets.US_ASCII);
  private ServerSocket lure;
  private Configuration conf;
  private long openedByName;

  /** The port that strangers name: takes every connection and counts what it is told. */
  @BeforeEach
  void listen() throws IOException {
    conf = TestCluster.conf();
    Path router = Files.createTempDirectory("trunkline").resolve("router.sock");
    conf.set("trunkline.ndn.listen", "unix://" + router);
    lure = new ServerSocket(0, 100, InetAddress.getLoopbackAddress());
    Thread thread = new Thread(this::takeAll, "lure");
    thread.setDaemon(true);
    thread.start();
    openedByName = stats.connectionsOpened("ndn");
  }

  private void takeAll() {
    while (!lure.isClosed()) {
      try (Socket visitor = lure.accept()) {
        visits.incrementAndGet();
        visitor.getOutputStream().write(says);
        visitor.setSoTimeout(5000);
        bytes.addAndGet(visitor.getInputStream().readNBytes(1 << 20).length);
      } catch (IOException e) {
        continue; // nobody is there any more
      }
    }
  }

  @AfterEach
  void close() throws Exception {
    lure.close();
    for (int i = opened.size() - 1; i >= 0; i--) {
      opened.get(i).close();
    }
  }

  /** DataNodes that say nothing themselves, so that strangers are heard. */
  private TestCluster cluster() throws IOException {
    Configuration silent = new Configuration(false);
    silent.set("trunkline.transport", "tcp");
    TestCluster cluster = new TestCluster(conf, 3, silent, silent, silent);
    opened.add(cluster);
    return cluster;
  }

  /** What strangers connect to: the client's own forwarder, or what that connects to. */
  private String router() {
    return conf.get("trunkline.ndn.face", conf.get("trunkline.ndn.listen"));
  }

  /** They answer for each DataNode, all with the same record. */
  private void strangers(TestCluster cluster, String address, int port) throws IOException {
    strangers(cluster, new DataNodeRecord(Preamble.VERSION, true, address, port, ""));
  }

  private void strangers(TestCluster cluster, DataNodeRecord says) throws IOException {
    strangers(cluster, says.encode(), STRANGERS);
  }

  private NdnNode strangers(TestCluster cluster, byte[] record, int count) throws IOException {
    NdnNode client = NdnNode.acquire(Settings.from(conf), null);
    opened.add(client);
    List<String> names = new ArrayList<>();
    for (DataNode dataNode : cluster.mini().getDataNodes()) {
      InetSocketAddress transfer = dataNode.getXferAddress();
      names.addAll(client.names().dataNode(transfer));
    }
    for (int i = 0; i < count; i++) {
      Configuration own = new Configuration(false);
      own.set("trunkline.ndn.face", router());
      own.setInt("trunkline.ndn.window.segments", 1 + i);
      NdnNode stranger = NdnNode.acquire(Settings.from(own), null);
      opened.add(stranger);
      for (String name : names) {
        Native.publishStatic(stranger.handle(), name, record, 60_000);
      }
    }
    for (String name : names) {
      assertArrayEquals(
          record, Native.fetch(client.handle(), name, true, false, false, 20_000), name);
    }
    return client;
  }

  /** A stranger was first, and its answer is in the caches: the DataNode is found all the same. */
  @ParameterizedTest
  @ValueSource(strings = {"refusal", "version", "host", "no record"})
  void aStrangerThatIsFirstKeepsNobodyFromADataNode(String lie) throws Exception {
    byte[] forged =
        switch (lie) {
          case "refusal" ->
              new DataNodeRecord(Preamble.VERSION, false, "", 0, "none here").encode();
          case "version" -> new DataNodeRecord(Preamble.VERSION + 1, true, "", 1, "").encode();
          case "host" -> new DataNodeRecord(Preamble.VERSION, true, "192.0.2.1", 1, "").encode();
          default -> lie.getBytes(StandardCharsets.US_ASCII);
        };
    TestRouter router = new TestRouter();
    opened.add(router);
    conf.unset("trunkline.ndn.listen");
    conf.set("trunkline.ndn.face", router.face());
    TestCluster cluster = cluster();
    NdnNode client = strangers(cluster, forged, 1);
    InetSocketAddress transfer = cluster.mini().getDataNodes().get(0).getXferAddress();
    Configuration own = new Configuration(false);
    own.set("trunkline.ndn.face", router());
    own.setInt("trunkline.ndn.window.segments", 99);
    NdnNode genuine = NdnNode.acquire(Settings.from(own), null);
    opened.add(genuine);
    byte[] record =
        new DataNodeRecord(Preamble.VERSION, true, "", lure.getLocalPort(), "").encode();
    for (String name : client.names().dataNode(transfer)) {
      Native.publishStatic(genuine.handle(), name, record, 60_000);
    }
    TestController.await(genuine::routerUp, "its way to the router");
    TestController.await(
        () -> {
          InetSocketAddress plugin = client.discovery().route(transfer).plugin();
          return plugin != null && plugin.getPort() == lure.getLocalPort();
        },
        "the DataNode's own answer");
  }

  private static byte[] bytesOf(ByteBuffer buffer) {
    byte[] bytes = new byte[buffer.remaining()];
    buffer.get(bytes);
    return bytes;
  }

  private static void putAndGet(FileSystem fs, String name) throws IOException {
    org.apache.hadoop.fs.Path path = new org.apache.hadoop.fs.Path(name);
    try (FSDataOutputStream out = fs.create(path)) {
      out.write(DATA);
    }
    try (FSDataInputStream in = fs.open(path)) {
      assertTrue(Arrays.equals(DATA, in.readAllBytes()));
    }
  }

  @Test
  void nobodyIsSentToAnotherHost() throws Exception {
    TestCluster cluster = cluster();
    strangers(cluster, "192.0.2.66", lure.getLocalPort());
    putAndGet(cluster.fs(), "/open");
    assertTrue(cluster.count(Fallback.OTHER_HOST) > 0);
    assertEquals(0, cluster.count(Fallback.PLUGIN_UNREACHABLE), "192.0.2.66 was not tried");
    assertEquals(openedByName, stats.connectionsOpened("ndn"));
    assertEquals(0, cluster.count(Counter.NAMED_WRITES));
  }

  /** A stranger may name any port of the DataNode's own host: no write is sent to what is there. */
  @Test
  void aPortThatIsNotThePluginsIsLeftAlone() throws Exception {
    TestCluster cluster = cluster();
    strangers(cluster, "", lure.getLocalPort());
    putAndGet(cluster.fs(), "/other-port");
    assertTrue(visits.get() > 0);
    lure.close();
    assertEquals(0, bytes.get());
    assertTrue(cluster.count(Fallback.PLUGIN_UNREACHABLE) > 0);
    assertEquals(0, cluster.count(Counter.NAMED_WRITES));
  }

  /** What a client's own configuration says goes before what any record says. */
  @Test
  void aClientThatKnowsOfTokensIsSentNowhere() throws Exception {
    conf.setBoolean("dfs.block.access.token.enable", true);
    TestCluster cluster = cluster();
    strangers(cluster, "", lure.getLocalPort());
    putAndGet(cluster.fs(), "/guarded");
    assertEquals(0, visits.get());
    assertTrue(cluster.count(Fallback.BLOCK_TOKEN) > 0);
    assertEquals(openedByName, stats.connectionsOpened("ndn"));
  }

  /** Clients often know nothing of tokens, but that blocks come with one. */
  @Test
  void aTokenIsShownToNobodyButTheDataNode() throws Exception {
    conf.setBoolean("dfs.block.access.token.enable", true);
    TestCluster cluster = cluster();
    strangers(cluster, "", lure.getLocalPort());
    says = bytesOf(Welcome.draw().encode());
    Configuration unaware = new Configuration(cluster.fs().getConf());
    unaware.unset("dfs.block.access.token.enable");
    try (FileSystem fs = FileSystem.newInstance(cluster.fs().getUri(), unaware)) {
      putAndGet(fs, "/unaware");
    }
    cluster.check("/unaware", DATA, 3);
    lure.close();
    assertEquals(0, bytes.get(), "bytes of " + visits + " connections");
    assertTrue(cluster.count(Fallback.BLOCK_TOKEN) > 0);
    assertEquals(0, cluster.count(Counter.NAMED_WRITES));
  }

  /** Who answers in the DataNode's place, and says that it knows tokens, learns no password. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void whoPretendsToKnowTokensIsFoundOut(boolean encrypted) throws Exception {
    conf.setBoolean("dfs.block.access.token.enable", true);
    conf.setBoolean("dfs.encrypt.data.transfer", encrypted);
    conf.set("dfs.trustedchannel.resolver.class", TrunklineTrustedChannelResolver.class.getName());
    TestCluster cluster = cluster();
    strangers(
        cluster, new DataNodeRecord(Preamble.VERSION, true, "", lure.getLocalPort(), "", true));
    byte[] answer = new byte[Welcome.BYTES + SecureHello.MESSAGE_BYTES];
    System.arraycopy(bytesOf(Welcome.draw().encode()), 0, answer, 0, Welcome.BYTES);
    says = answer;
    putAndGet(cluster.fs(), "/pretended");
    cluster.check("/pretended", DATA, 3);
    lure.close();
    assertTrue(visits.get() > 0);
    assertTrue(bytes.get() <= (long) visits.get() * SecureHello.MAX_BYTES, bytes + " bytes");
    assertTrue(cluster.count(Fallback.HANDSHAKE) > 0);
    assertEquals(0, cluster.count(Counter.NAMED_WRITES));
  }
}

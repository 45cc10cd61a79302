package io.trunkline.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.mirror.TestController;
import io.trunkline.hadoop.mirror.TestController.Told;
import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DFSOutputStream;
import org.apache.hadoop.hdfs.DFSTestUtil;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.hdfs.protocol.datatransfer.TrustedChannelResolver;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Writes that DataNodes report to a controller: stock TCP in all that a user sees. */
class MirrorTransferTest extends TransferTest {
  private static final Pattern SOCKET =
      Pattern.compile("ESTAB\\s+\\d+\\s+\\d+\\s+(\\S+)\\s+(\\S+)");

  private static final String CLIENT = "127.0.0.9";

  private TestController controller;
  private long byMirror;
  private long byTcp;

  @BeforeEach
  void count() {
    byMirror = TransferStats.get().connectionsOpened("mirror");
    byTcp = TransferStats.get().connectionsOpened("tcp");
  }

  @AfterAll
  void stopController() {
    controller.close();
  }

  private static Configuration conf(String controller) {
    Configuration conf = TestCluster.conf();
    conf.set("trunkline.transport", "mirror,tcp");
    conf.set("trunkline.mirror.controller", controller);
    conf.setInt("trunkline.mirror.wait.ms", 1000); // as all of a cluster has few cores here
    return conf;
  }

  @Override
  Configuration conf() {
    try {
      controller = new TestController();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
    return conf("http://" + controller.address());
  }

  /** Of three replicas, that of the client and two of DataNodes. */
  @Override
  long blocksWritten() {
    return cluster().count(Counter.MIRROR_REPORTED) / 3;
  }

  @Override
  long reads() {
    return TransferStats.get().connectionsOpened("mirror") - byMirror;
  }

  @Override
  void assertAllCarried() {
    assertEquals(0, cluster().allFallbacks());
    assertEquals(byTcp, TransferStats.get().connectionsOpened("tcp"));
    assertEquals(0, cluster().count(Counter.MIRROR_UNREACHABLE));
  }

  private static DatanodeInfo[] pipeline(FSDataOutputStream out) throws IOException {
    return ((DFSOutputStream) out.getWrappedStream()).getPipeline();
  }

  /** The first block of a file, with the generation that it has now. */
  private static ExtendedBlock block(TestCluster cluster, String path) throws IOException {
    return DFSTestUtil.getAllBlocks(cluster.fs(), new Path(path)).get(0).getBlock();
  }

  /** All connections of this host, as the kernel has them: {@code local > remote}. */
  private static Set<String> connections() throws IOException, InterruptedException {
    Process ss = new ProcessBuilder("ss", "-tnH").redirectErrorStream(true).start();
    String text = new String(ss.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertEquals(0, ss.waitFor(), text);
    Set<String> found = new HashSet<>();
    Matcher socket = SOCKET.matcher(text.replaceAll("\\[::ffff:([0-9.]+)]", "$1"));
    while (socket.find()) {
      found.add(socket.group(1) + " > " + socket.group(2));
    }
    return found;
  }

  /** Reports of a block of one generation, by position. */
  private TreeMap<Integer, Told> reports(ExtendedBlock block) {
    TreeMap<Integer, Told> found = new TreeMap<>();
    for (Told one : controller.reports()) {
      if (one.id().equals(id(block))) {
        found.put(Integer.parseInt(one.fields().get("position")), one);
      }
    }
    return found;
  }

  private static String id(ExtendedBlock block) {
    return block.getBlockPoolId() + "~" + block.getBlockId() + "~" + block.getGenerationStamp();
  }

  private void awaitWhole(ExtendedBlock block, int replicas) throws InterruptedException {
    TestController.await(() -> reports(block).size() == replicas, controller.told());
  }

  @Test
  void whatIsReportedIsThePipelineAsTheKernelHasIt() throws Exception {
    ExtendedBlock block;
    try (FSDataOutputStream out = cluster().fs().create(new Path("/reported"))) {
      out.write(TestCluster.data(21, 1 << 20));
      out.hflush();
      block = block(cluster(), "/reported");
      awaitWhole(block, 3);
      Set<String> connections = connections();
      DatanodeInfo[] pipeline = pipeline(out);
      assertEquals(3, pipeline.length);
      Set<String> sources = new HashSet<>();
      reports(block)
          .forEach(
              (position, one) -> {
                String source = one.end("source");
                String destination = one.end("destination");
                assertEquals(pipeline[position - 1].getXferAddr(), destination);
                assertTrue(connections.contains(source + " > " + destination), one.hop());
                assertTrue(connections.contains(destination + " > " + source), one.hop());
                assertEquals("PIPELINE_SETUP_CREATE", one.fields().get("stage"));
                assertEquals("3", one.fields().get("replicas"));
                assertTrue(one.fields().get("client").startsWith("DFSClient_"));
                sources.add(source);
              });
      assertEquals(3, sources.size(), "each from a connection of its own");
      TestController.await(
          () -> cluster().count(Counter.MIRROR_ARMED) + cluster().count(Counter.MIRROR_LATE) == 1,
          "counted by who reported the last one");
    }
    TestController.await(
        () -> controller.ended().contains(id(block)), "ended with its connections");
    cluster().check("/reported", TestCluster.data(21, 1 << 20), 3);
  }

  @Test
  void anAppendIsReportedByTheGenerationThatTheBlockGets() throws Exception {
    cluster().write("/appended", TestCluster.data(22, 100_000));
    ExtendedBlock before = block(cluster(), "/appended");
    try (FSDataOutputStream out = cluster().append(new Path("/appended"))) {
      out.write(1);
      out.hflush();
      ExtendedBlock block = block(cluster(), "/appended");
      assertTrue(before.getGenerationStamp() < block.getGenerationStamp());
      awaitWhole(block, 3);
      assertEquals("PIPELINE_SETUP_APPEND", reports(block).get(1).fields().get("stage"));
    }
  }

  @Test
  void oneReplicaAndReplicationAreNotReported() throws Exception {
    byte[] data = TestCluster.data(23, 3 << 20);
    Path path = new Path("/single");
    try (FSDataOutputStream out = cluster().fs().create(path, (short) 1)) {
      out.write(data);
    }
    cluster().fs().setReplication(path, (short) 3);
    cluster().check("/single", data, 3);
    assertEquals(0, cluster().count(Counter.MIRROR_REPORTED));
    assertAllCarried();
  }

  /** Without the DataNodes' plug-in: their sockets are enough. */
  @Test
  void aRecoveryIsReportedAsAPipelineOfItsOwn() throws Exception {
    Configuration conf = conf("http://" + controller.address());
    conf.unset("dfs.datanode.plugins");
    byte[] data = TestCluster.data(24, 6 << 20);
    try (TestCluster cluster = new TestCluster(conf, 4)) {
      List<ExtendedBlock> blocks = new ArrayList<>();
      try (FSDataOutputStream out = cluster.fs().create(new Path("/recovered"))) {
        out.write(data, 0, 2 << 20);
        out.hflush();
        blocks.add(block(cluster, "/recovered"));
        cluster.stopInPipeline(out, 1);
        out.write(data, 2 << 20, 4 << 20);
        out.hflush();
        blocks.add(block(cluster, "/recovered"));
        awaitWhole(blocks.get(1), pipeline(out).length);
      }
      assertTrue(blocks.get(0).getGenerationStamp() < blocks.get(1).getGenerationStamp());
      Told told = reports(blocks.get(1)).get(1);
      assertEquals("PIPELINE_SETUP_STREAMING_RECOVERY", told.fields().get("stage"));
      TestController.await(() -> controller.ended().contains(id(blocks.get(0))), "the first one");
      cluster.check("/recovered", data, 3);
    }
  }

  /** DataNodes trust one another, and no client. */
  public static final class ClientsAreStrangers extends TrustedChannelResolver {
    @Override
    public boolean isTrusted() {
      return true;
    }

    @Override
    public boolean isTrusted(InetAddress peer) {
      return !peer.getHostAddress().equals(CLIENT);
    }
  }

  /**
   * The client's segments are encrypted and the first DataNode's are not: a copy of the one would
   * be nonsense in the other's place, though the second can't know.
   */
  @Test
  void aBlockThatComesEncryptedIsNotReportedAsItGoesOnInPlain() throws Exception {
    Configuration conf = conf("http://" + controller.address());
    conf.setBoolean("dfs.block.access.token.enable", true);
    conf.setBoolean("dfs.encrypt.data.transfer", true);
    Configuration ofClient = new Configuration(conf);
    ofClient.set("trunkline.local.address", CLIENT);
    conf.set("dfs.trustedchannel.resolver.class", ClientsAreStrangers.class.getName());
    byte[] data = TestCluster.data(25, 3 << 20);
    try (TestCluster cluster = new TestCluster(conf, 3);
        FileSystem client = FileSystem.newInstance(cluster.fs().getUri(), ofClient)) {
      try (FSDataOutputStream out = client.create(new Path("/guarded"))) {
        out.write(data);
        out.hflush();
        ExtendedBlock block = block(cluster, "/guarded");
        awaitWhole(block, 1);
        assertEquals(Set.of(3), reports(block).keySet());
      }
      cluster.check("/guarded", data, 3);
      assertEquals(1, cluster.count(Counter.MIRROR_REPORTED));
      assertEquals(0, cluster.allFallbacks());
    }
  }

  /** It takes connections and says nothing: writes are as quick as ever, and survive a DataNode. */
  @Test
  void withAControllerThatIsSilentItIsStockTcp() throws Exception {
    byte[] data = TestCluster.data(26, 6 << 20);
    try (ServerSocket silent = new ServerSocket(0);
        TestCluster cluster =
            new TestCluster(conf("http://127.0.0.1:" + silent.getLocalPort()), 4)) {
      try (FSDataOutputStream out = cluster.fs().create(new Path("/alone"))) {
        out.write(data, 0, 2 << 20);
        out.hflush();
        cluster.stopInPipeline(out, 0);
        out.write(data, 2 << 20, 4 << 20);
      }
      cluster.check("/alone", data, 3);
      assertTrue(cluster.count(Counter.MIRROR_REPORTED) >= 3);
      TestController.await(
          () -> cluster.count(Counter.MIRROR_UNREACHABLE) > 0, "a report was given up");
      assertEquals(0, cluster.allFallbacks());
    }
    TestController.await(
        () -> TransferStats.get().json().contains("\"mirror_open\":0"), "nobody waits for it");
  }

  @Test
  void withoutItsTokenADataNodeUsesTcpAndSaysSo() throws Exception {
    Configuration conf = conf("http://" + controller.address());
    conf.set("trunkline.mirror.token.file", "/nowhere/token");
    byte[] data = TestCluster.data(27, 1 << 20);
    try (TestCluster cluster = new TestCluster(conf, 2)) {
      cluster.write("/token", data);
      cluster.check("/token", data, 2);
      assertEquals(1, cluster.count(Fallback.UNAVAILABLE));
      assertEquals(0, cluster.count(Counter.MIRROR_REPORTED));
    }
  }
}

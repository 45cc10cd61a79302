package io.trunkline.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.TrunklineSocketFactory;
import io.trunkline.hadoop.read.NamedReplicaAccessorBuilder;
import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.hdfs.DFSOutputStream;
import org.apache.hadoop.hdfs.DFSTestUtil;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.MiniDFSCluster.DataNodeProperties;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.hdfs.server.datanode.TrunklineDataNodePlugin;

/** A stock mini cluster with the plug-in configured, and what tests ask of it. */
final class TestCluster implements AutoCloseable {
  static final int BLOCK_BYTES = 8 << 20;

  private final Path base;
  private MiniDFSCluster mini;
  private final Map<Counter, Long> counters = new EnumMap<>(Counter.class);
  private final Map<Fallback, Long> fallbacks = new EnumMap<>(Fallback.class);

  TestCluster(Configuration conf, int dataNodes, Configuration... overlays) throws IOException {
    Path parent = Files.createDirectories(Path.of("target", "dfs").toAbsolutePath());
    base = Files.createTempDirectory(parent, "cluster");
    mini = start(conf, dataNodes, true, overlays);
    reset();
  }

  private MiniDFSCluster start(
      Configuration conf, int dataNodes, boolean format, Configuration... overlays)
      throws IOException {
    MiniDFSCluster.Builder builder =
        new MiniDFSCluster.Builder(conf, base.toFile()).numDataNodes(dataNodes).format(format);
    if (overlays.length > 0) {
      builder.dataNodeConfOverlays(overlays);
      builder.checkDataNodeAddrConfig(overlays[0].get("dfs.datanode.address") != null);
    }
    MiniDFSCluster started = builder.build();
    started.waitActive();
    return started;
  }

  /** Stops all of it, and starts it with the same files and another configuration. */
  void restart(Configuration conf, Configuration... overlays) throws IOException {
    int dataNodes = mini.getDataNodes().size();
    mini.shutdown();
    mini = start(conf, dataNodes, false, overlays);
    reset();
  }

  /** The properties that an operator pastes, and times short enough for a test. */
  static Configuration conf() {
    Configuration conf = new HdfsConfiguration();
    conf.set("hadoop.rpc.socket.factory.class.default", TrunklineSocketFactory.class.getName());
    conf.set("dfs.datanode.plugins", TrunklineDataNodePlugin.class.getName());
    conf.set(
        "dfs.client.replica.accessor.builder.classes", NamedReplicaAccessorBuilder.class.getName());
    conf.setLong("dfs.blocksize", BLOCK_BYTES);
    conf.setInt("dfs.replication", 3);
    // With as many DataNodes as replicas, a busy one would not be passed over but missed.
    conf.setBoolean("dfs.namenode.redundancy.considerLoad", false);
    conf.setInt("dfs.client.socket-timeout", 20_000);
    conf.setInt("dfs.namenode.heartbeat.recheck-interval", 500);
    conf.setInt("dfs.heartbeat.interval", 1);
    // A copy that the NameNode ordered and that failed is ordered again after this, not after five
    // minutes: on a busy machine it orders one to a DataNode that has the block and is yet to say
    // so.
    conf.setInt("dfs.namenode.reconstruction.pending.timeout-sec", 5);
    // A DataNode that left a pipeline keeps what it had of the block, and takes no other copy until
    // the NameNode hears of that from a whole report: else each six hours.
    conf.setLong("dfs.blockreport.intervalMsec", 10_000);
    conf.setInt("trunkline.ndn.pull.timeout.ms", 6000);
    // Tests count what goes by name, small files' bodies, too.
    conf.setInt("trunkline.ndn.inline.bytes", 0);
    return conf;
  }

  MiniDFSCluster mini() {
    return mini;
  }

  DistributedFileSystem fs() throws IOException {
    return mini.getFileSystem();
  }

  /**
   * Appends to a file once the NameNode knows all of its replicas: a file is closed as soon as it
   * knows one, and the pipeline of an append has those that it knows.
   */
  FSDataOutputStream append(org.apache.hadoop.fs.Path path) throws Exception {
    DFSTestUtil.waitReplication(fs(), path, fs().getFileStatus(path).getReplication());
    return fs().append(path);
  }

  /** Counters are of the JVM: what follows is counted from here. */
  void reset() {
    for (Counter counter : Counter.values()) {
      counters.put(counter, TransferStats.get().value(counter));
    }
    for (Fallback fallback : Fallback.values()) {
      fallbacks.put(fallback, TransferStats.get().fallbacks(fallback));
    }
  }

  long count(Counter counter) {
    return TransferStats.get().value(counter) - counters.get(counter);
  }

  long count(Fallback fallback) {
    return TransferStats.get().fallbacks(fallback) - fallbacks.get(fallback);
  }

  long allFallbacks() {
    return Arrays.stream(Fallback.values()).mapToLong(this::count).sum();
  }

  static byte[] data(int seed, int length) {
    byte[] data = new byte[length];
    new Random(seed).nextBytes(data);
    return data;
  }

  void write(String path, byte[] data) throws IOException {
    try (FSDataOutputStream out = fs().create(new org.apache.hadoop.fs.Path(path))) {
      out.write(data);
    }
  }

  byte[] read(String path) throws IOException {
    try (FSDataInputStream in = fs().open(new org.apache.hadoop.fs.Path(path))) {
      return in.readAllBytes();
    }
  }

  /** Reads the file by name and by stock means, and compares every replica on disk. */
  void check(String path, byte[] data, int replicas) throws Exception {
    assertArrayEquals(data, read(path));
    if (data.length == 0) {
      return;
    }
    org.apache.hadoop.fs.Path file = new org.apache.hadoop.fs.Path(path);
    int at = 0;
    for (LocatedBlock block : DFSTestUtil.getAllBlocks(fs(), file)) {
      int length = (int) block.getBlockSize();
      byte[] expected = Arrays.copyOfRange(data, at, at + length);
      for (File replica : replicas(block, replicas)) {
        assertArrayEquals(expected, Files.readAllBytes(replica.toPath()), block.toString());
      }
      at += length;
    }
    assertEquals(data.length, at);
  }

  /** Waits for so many finalized replicas on DataNodes that live. */
  private List<File> replicas(LocatedBlock block, int count) throws Exception {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(90);
    while (true) {
      List<File> found = new ArrayList<>();
      for (DataNode dataNode : mini.getDataNodes()) {
        var dataset = dataNode.getFSDataset();
        if (dataset.isValidBlock(block.getBlock())) {
          found.add(new File(dataset.getBlockLocalPathInfo(block.getBlock()).getBlockPath()));
        }
      }
      if (found.size() >= count) {
        return found;
      }
      assertTrue(System.nanoTime() - deadline < 0, block + " has " + found.size() + " replicas");
      Thread.sleep(100);
    }
  }

  /** Stops the DataNode at a place of the pipeline that a stream writes to. */
  DataNodeProperties stopInPipeline(FSDataOutputStream out, int place) throws Exception {
    DatanodeInfo[] pipeline = ((DFSOutputStream) out.getWrappedStream()).getPipeline();
    for (int i = 0; i < mini.getDataNodes().size(); i++) {
      if (mini.getDataNodes().get(i).getXferPort() == pipeline[place].getXferPort()) {
        return mini.stopDataNode(i);
      }
    }
    throw new AssertionError("no DataNode at " + place);
  }

  @Override
  public void close() {
    mini.shutdown(true);
  }
}

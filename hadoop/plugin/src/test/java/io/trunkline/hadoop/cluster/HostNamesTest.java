package io.trunkline.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.net.NetUtils;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The NameNode knows the DataNodes by one address and clients by another, that of their host names,
 * as where hosts have several networks.
 */
@Timeout(300)
class HostNamesTest {
  private static final int DATA_NODES = 2;

  /** Where there are block tokens a handshake says by name, too, which DataNode is meant. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void dataNodesAreFoundByTheirHostNames(boolean tokens) throws Exception {
    Configuration conf = tokens ? SecuredClustersTest.tokens() : TestCluster.conf();
    conf.setInt("dfs.replication", DATA_NODES);
    for (String server : new String[] {"", "http.", "ipc."}) {
      conf.set("dfs.datanode." + server + "address", "0.0.0.0:0");
    }
    conf.setBoolean("dfs.client.use.datanode.hostname", true);
    conf.setBoolean("dfs.datanode.use.datanode.hostname", true);
    conf.set("dfs.datanode.hostname", "Worker.example.org");
    NetUtils.addStaticResolution("Worker.example.org", "127.0.0.2");
    Path base = Files.createDirectories(Path.of("target", "dfs").toAbsolutePath());
    byte[] data = TestCluster.data(1, 10 << 20);
    try (MiniDFSCluster cluster =
        new MiniDFSCluster.Builder(conf, Files.createTempDirectory(base, "names").toFile())
            .numDataNodes(DATA_NODES)
            .checkDataNodeAddrConfig(true)
            .checkDataNodeHostConfig(true)
            .build()) {
      cluster.waitActive();
      assertEquals(
          "Worker.example.org", cluster.getDataNodes().get(0).getDatanodeId().getHostName());
      long named = TransferStats.get().value(Counter.NAMED_RECEIVES);
      long byTcp = TransferStats.get().connectionsOpened("tcp");
      FileSystem fs = cluster.getFileSystem();
      org.apache.hadoop.fs.Path path = new org.apache.hadoop.fs.Path("/file");
      try (FSDataOutputStream out = fs.create(path)) {
        out.write(data);
      }
      assertEquals(2 * DATA_NODES, TransferStats.get().value(Counter.NAMED_RECEIVES) - named);
      assertEquals(byTcp, TransferStats.get().connectionsOpened("tcp"));
      try (FSDataInputStream in = fs.open(path)) {
        assertArrayEquals(data, in.readAllBytes());
      }
      assertTrue(fs.getFileBlockLocations(path, 0, 1)[0].getNames()[0].startsWith("127.0.0.1:"));
      if (!tokens) {
        assertEquals(byTcp, TransferStats.get().connectionsOpened("tcp"));
      }
    }
  }
}

package io.trunkline.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.conf.SettingsException;
import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import java.io.IOException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Where names cannot serve, stock TCP does, and it is counted. */
@Timeout(300)
class FallbackTest {
  private static final byte[] DATA = TestCluster.data(1, 10 << 20);

  @Test
  void aDataNodeWithoutThePlugin() throws Exception {
    Configuration conf = TestCluster.conf();
    Configuration with = new Configuration(false);
    with.set("dfs.datanode.plugins", conf.get("dfs.datanode.plugins"));
    conf.unset("dfs.datanode.plugins");
    Configuration without = new Configuration(false);
    try (TestCluster cluster = new TestCluster(conf, 3, with, without, with)) {
      // The order of a pipeline is chance, and not all of them show both.
      for (int i = 0; i < 4 || i < 40 && !mixed(cluster); i++) {
        cluster.write("/mixed" + i, DATA);
        cluster.check("/mixed" + i, DATA, 3);
      }
      assertTrue(cluster.count(Fallback.NO_PLUGIN) > 0);
      assertTrue(cluster.count(Counter.NAMED_RECEIVES) > 0);
    }
  }

  private static boolean mixed(TestCluster cluster) {
    return cluster.count(Fallback.NO_PLUGIN) > 0 && cluster.count(Counter.NAMED_RECEIVES) > 0;
  }

  private static void allGoesByTcp(Configuration conf, Fallback reason) throws Exception {
    try (TestCluster cluster = new TestCluster(conf, 3)) {
      cluster.write("/stock", DATA);
      cluster.check("/stock", DATA, 3);
      assertEquals(0, cluster.count(Counter.NAMED_WRITES));
      assertTrue(cluster.count(reason) > 0);
    }
  }

  /** Nothing says who writes, so nothing by name is secured. */
  @Test
  void protectionWithoutBlockTokens() throws Exception {
    Configuration conf = TestCluster.conf();
    conf.set("dfs.data.transfer.protection", "privacy");
    allGoesByTcp(conf, Fallback.SECURED_OTHER);
  }

  @Test
  void aRouterThatIsNotThere() throws Exception {
    Configuration conf = TestCluster.conf();
    conf.set("trunkline.ndn.face", "tcp://127.0.0.1:1");
    allGoesByTcp(conf, Fallback.ROUTER_DOWN);
  }

  @Test
  void tcpAlone() throws Exception {
    Configuration conf = TestCluster.conf();
    conf.set("trunkline.transport", "tcp");
    try (TestCluster cluster = new TestCluster(conf, 3)) {
      cluster.write("/stock", DATA);
      cluster.check("/stock", DATA, 3);
      assertEquals(0, cluster.count(Counter.NAMED_WRITES));
      assertEquals(0, cluster.count(Counter.NAMED_READS));
      assertEquals(0, cluster.allFallbacks());
    }
  }

  @Test
  void wrongSettingsAreRefusedAtStart() throws IOException {
    Configuration conf = TestCluster.conf();
    conf.set("trunkline.ndn.windows.segments", "5");
    conf.set(FileSystem.FS_DEFAULT_NAME_KEY, "hdfs://127.0.0.1:1");
    Throwable refused = assertThrows(Exception.class, () -> FileSystem.newInstance(conf));
    while (!(refused instanceof SettingsException) && refused.getCause() != null) {
      refused = refused.getCause();
    }
    assertTrue(
        refused.getMessage().contains("did you mean trunkline.ndn.window.segments?"),
        refused.getMessage());
    assertThrows(Exception.class, () -> new TestCluster(conf, 1).close());
  }
}

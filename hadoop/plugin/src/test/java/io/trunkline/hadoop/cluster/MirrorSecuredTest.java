package io.trunkline.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.trunkline.hadoop.mirror.TestController;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Protected data transfer with the transport {@code mirror}: each hop has bytes of its own, or a
 * handshake before them, and no controller hears of it.
 */
class MirrorSecuredTest {
  @ParameterizedTest
  @ValueSource(strings = {"authentication", "integrity", "privacy"})
  void whatSaslProtectsIsNeverReported(String qop) throws Exception {
    try (TestKdc kdc = new TestKdc();
        TestController controller = new TestController()) {
      Configuration conf = conf(controller);
      kdc.secure(conf, qop);
      isStockTcp(conf, controller);
    }
  }

  @Test
  void whatIsEncryptedIsNeverReported() throws Exception {
    try (TestController controller = new TestController()) {
      Configuration conf = conf(controller);
      conf.setBoolean("dfs.encrypt.data.transfer", true);
      isStockTcp(conf, controller);
    }
  }

  private static Configuration conf(TestController controller) {
    Configuration conf = TestCluster.conf();
    conf.set("trunkline.transport", "mirror,tcp");
    conf.set("trunkline.mirror.controller", "http://" + controller.address());
    conf.setBoolean("dfs.block.access.token.enable", true);
    return conf;
  }

  private static void isStockTcp(Configuration conf, TestController controller) throws Exception {
    byte[] data = TestCluster.data(27, 3 << 20);
    try (TestCluster cluster = new TestCluster(conf, 3)) {
      cluster.write("/guarded", data);
      cluster.check("/guarded", data, 3);
      assertEquals(0, cluster.count(Counter.MIRROR_REPORTED));
      assertEquals(0, cluster.allFallbacks());
    }
    assertEquals(List.of(), controller.told());
  }
}

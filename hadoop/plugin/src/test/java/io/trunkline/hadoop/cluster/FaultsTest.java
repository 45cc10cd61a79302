package io.trunkline.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.stats.TransferStats.Counter;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A DataNode of the pipeline dies while a block is written. */
@Timeout(300)
class FaultsTest {
  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2})
  void theWriteCompletesWithoutIt(int place) throws Exception {
    byte[] data = TestCluster.data(place, 30 << 20);
    Configuration conf = TestCluster.conf();
    try (TestCluster cluster = new TestCluster(conf, 4)) {
      try (FSDataOutputStream out = cluster.fs().create(new Path("/killed"))) {
        int half = 11_000_000;
        out.write(data, 0, half);
        out.hflush();
        cluster.stopInPipeline(out, place);
        out.write(data, half, 3_000_000);
        out.hsync();
        out.write(data, half + 3_000_000, data.length - half - 3_000_000);
      }
      cluster.check("/killed", data, 3);
      assertTrue(cluster.count(Counter.NAMED_WRITES) >= 5, "recovery goes by name as well");
    }
  }
}

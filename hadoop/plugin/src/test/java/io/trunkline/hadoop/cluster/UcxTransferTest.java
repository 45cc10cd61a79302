package io.trunkline.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.ucx.UcxLibrary;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Writes and reads by UCX. */
@Timeout(300)
class UcxTransferTest {
  /** Client to DataNodes and each of these to the others, times the two workers of each. */
  private static final int MOST_CONNECTIONS = (3 + 6) * 2;

  private long accepted;
  private long opened;
  private long byTcp;

  @BeforeEach
  void needUcx() {
    UcxLibrary.Status status = UcxLibrary.probe(Settings.from(conf()).ucx());
    assumeTrue(status.available(), "no UCX here: " + status.reason());
    accepted = TransferStats.get().connectionsAccepted("ucx");
    opened = TransferStats.get().connectionsOpened("ucx");
    byTcp = TransferStats.get().connectionsOpened("tcp");
  }

  private static Configuration conf() {
    Configuration conf = TestCluster.conf();
    conf.set("trunkline.transport", "ucx,tcp");
    return conf;
  }

  private static long number(String name) {
    Matcher found = Pattern.compile("\"" + name + "\":(\\d+)").matcher(TransferStats.get().json());
    assertTrue(found.find(), name + " in " + TransferStats.get().json());
    return Long.parseLong(found.group(1));
  }

  @Test
  void aFileIsWrittenAndReadOverConnectionsThatAreMadeOnce() throws Exception {
    byte[] data = TestCluster.data(1, 40 << 20);
    try (TestCluster cluster = new TestCluster(conf(), 3)) {
      long connected = number("ucx_connects");
      cluster.write("/first", data);
      long bytes = number("ucx_bytes_sent");
      assertEquals(15, cluster.count(Counter.UCX_WRITES), "client and two DataNodes, five blocks");
      assertEquals(15, cluster.count(Counter.UCX_RECEIVES));
      cluster.write("/second", data);
      long connects = number("ucx_connects") - connected;
      assertTrue(connects <= MOST_CONNECTIONS, connects + " connections for 30 pipeline hops");
      assertTrue(number("ucx_bytes_sent") - bytes >= 3L * data.length);
      cluster.check("/first", data, 3);
      cluster.check("/second", data, 3);
      assertTrue(cluster.count(Counter.UCX_READS) > 0);
      assertEquals(0, cluster.allFallbacks());
      assertEquals(byTcp, TransferStats.get().connectionsOpened("tcp"));
      assertTrue(number("ucx_registered_bytes") <= 256 << 20);
      assertTrue(TransferStats.get().connectionsAccepted("ucx") - accepted >= 30);
      assertTrue(TransferStats.get().connectionsOpened("ucx") - opened >= 30);
    }
  }

  @Test
  void flushedAndAppendedBytesComeThrough() throws Exception {
    byte[] data = TestCluster.data(3, 12 << 20);
    Path path = new Path("/append");
    try (TestCluster cluster = new TestCluster(conf(), 3)) {
      int at = 0;
      int round = 0;
      while (at < data.length) {
        int part =
            Math.min(data.length - at, new int[] {64512 * 3, 1000, 777_777, 3 << 20}[round % 4]);
        try (FSDataOutputStream out =
            round == 0 ? cluster.fs().create(path) : cluster.fs().append(path)) {
          out.write(data, at, part / 2);
          out.hflush();
          try (FSDataInputStream in = cluster.fs().open(path)) {
            byte[] seen = new byte[at + part / 2];
            in.readFully(seen);
            assertArrayEquals(Arrays.copyOf(data, at + part / 2), seen);
          }
          out.write(data, at + part / 2, part - part / 2);
        }
        at += part;
        round++;
      }
      cluster.check("/append", data, 3);
      assertEquals(0, cluster.allFallbacks());
    }
  }

  @Test
  void eightWritersAtOnce() throws Exception {
    Configuration conf = conf();
    conf.setInt("trunkline.ucx.workers", 1);
    ExecutorService pool = Executors.newFixedThreadPool(8);
    try (TestCluster cluster = new TestCluster(conf, 3)) {
      List<Future<?>> futures = new ArrayList<>();
      for (int i = 0; i < 8; i++) {
        int seed = i;
        futures.add(
            pool.submit(
                () -> {
                  cluster.write("/many" + seed, TestCluster.data(seed, 10 << 20));
                  return null;
                }));
      }
      for (Future<?> future : futures) {
        future.get(200, TimeUnit.SECONDS);
      }
      for (int i = 0; i < 8; i++) {
        cluster.check("/many" + i, TestCluster.data(i, 10 << 20), 3);
      }
      assertEquals(0, cluster.allFallbacks());
    } finally {
      pool.shutdownNow();
    }
  }

  /** A byte pipe carries the handshakes, tokens and ciphertexts of stock code as they are. */
  @ParameterizedTest
  @ValueSource(strings = {"dfs.block.access.token.enable", "dfs.encrypt.data.transfer"})
  void tokensAndEncryptionPassThrough(String key) throws Exception {
    Configuration conf = conf();
    conf.setBoolean("dfs.block.access.token.enable", true);
    conf.setBoolean(key, true);
    byte[] data = TestCluster.data(4, 10 << 20);
    try (TestCluster cluster = new TestCluster(conf, 3)) {
      cluster.write("/guarded", data);
      cluster.check("/guarded", data, 3);
      assertEquals(0, cluster.allFallbacks());
      assertTrue(TransferStats.get().connectionsAccepted("ucx") - accepted >= 6);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2})
  void theWriteCompletesWithoutADataNodeThatStops(int place) throws Exception {
    byte[] data = TestCluster.data(place, 30 << 20);
    try (TestCluster cluster = new TestCluster(conf(), 4)) {
      try (FSDataOutputStream out = cluster.fs().create(new Path("/killed"))) {
        int half = 11_000_000;
        out.write(data, 0, half);
        out.hflush();
        cluster.stopInPipeline(out, place);
        out.write(data, half, data.length - half);
      }
      cluster.check("/killed", data, 3);
      assertTrue(cluster.count(Counter.UCX_WRITES) >= 5, "recovery goes by UCX as well");
    }
  }

  @Test
  void aDataNodeThatIsRestartedIsFoundAgain() throws Exception {
    byte[] data = TestCluster.data(6, 10 << 20);
    try (TestCluster cluster = new TestCluster(conf(), 3)) {
      cluster.write("/before", data);
      for (int i = 0; i < 3; i++) {
        assertTrue(cluster.mini().restartDataNode(0, true));
      }
      cluster.mini().waitActive();
      cluster.reset();
      cluster.write("/after", data);
      cluster.check("/after", data, 3);
      cluster.check("/before", data, 3);
      assertTrue(cluster.count(Counter.UCX_WRITES) >= 6);
    }
  }

  @Test
  void aDataNodeWithoutUcxIsServedByTcp() throws Exception {
    Configuration conf = conf();
    Configuration with = new Configuration(false);
    with.set("dfs.datanode.plugins", conf.get("dfs.datanode.plugins"));
    conf.unset("dfs.datanode.plugins");
    Configuration without = new Configuration(false);
    byte[] data = TestCluster.data(7, 10 << 20);
    try (TestCluster cluster = new TestCluster(conf, 3, with, without, with)) {
      cluster.write("/mixed", data);
      cluster.check("/mixed", data, 3);
      assertTrue(cluster.count(Fallback.NO_PLUGIN) > 0);
      assertTrue(cluster.count(Counter.UCX_RECEIVES) > 0);
    }
  }
}

package io.trunkline.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.trunkline.hadoop.Transports;
import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.mark.SocketMark;
import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.transport.LateChannelSocket;
import io.trunkline.hadoop.ucx.UcxChannel;
import io.trunkline.hadoop.ucx.UcxLibrary;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Writes and reads by UCX: what any transport must carry, and what is UCX's own. */
class UcxTransferTest extends TransferTest {
  /** Client to DataNodes and each of these to the others, times the two workers of each. */
  private static final int MOST_CONNECTIONS = (3 + 6) * 2;

  private long accepted;
  private long opened;
  private long byTcp;

  @BeforeEach
  void count() {
    accepted = TransferStats.get().connectionsAccepted("ucx");
    opened = TransferStats.get().connectionsOpened("ucx");
    byTcp = TransferStats.get().connectionsOpened("tcp");
  }

  @Override
  Configuration conf() {
    Configuration conf = TestCluster.conf();
    conf.set("trunkline.transport", "ucx,tcp");
    UcxLibrary.Status status = UcxLibrary.probe(Settings.from(conf).ucx());
    assumeTrue(status.available(), "no UCX here: " + status.reason());
    return conf;
  }

  /** The client, and each DataNode that passes a block on to the next. */
  @Override
  long blocksWritten() {
    return cluster().count(Counter.UCX_WRITES) / 3;
  }

  @Override
  long reads() {
    return cluster().count(Counter.UCX_READS);
  }

  @Override
  void assertAllCarried() {
    assertEquals(0, cluster().allFallbacks());
    assertEquals(byTcp, TransferStats.get().connectionsOpened("tcp"));
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

  /** UCX connects, but what is asked over it is not answered, as in a network that loses much. */
  @Test
  void aDataNodeThatDoesNotAnswerByUcxIsLeftToTcpForAWhile() throws Exception {
    Configuration conf = conf();
    byte[] data = TestCluster.data(9, 10 << 20);
    try (TestCluster cluster = new TestCluster(conf, 3)) {
      InetSocketAddress one = cluster.mini().getDataNodes().get(0).getXferAddress();
      InetSocketAddress at = new InetSocketAddress("127.0.0.1", one.getPort());
      // The pause is over after a while, but grows each time.
      do {
        try (Socket socket =
            new LateChannelSocket(
                Transports.of(Settings.from(conf), conf), null, SocketMark.NONE)) {
          socket.connect(at, 20_000);
          if (socket.getChannel() instanceof UcxChannel channel) {
            ByteBuffer answer = ByteBuffer.allocate(1);
            assertThrows(SocketTimeoutException.class, () -> channel.read(answer, 100));
          }
        }
        cluster.write("/unanswered", data);
      } while (cluster.count(Fallback.PLANE_PAUSED) == 0);
      assertTrue(cluster.count(Counter.UCX_LOST) > 0);
      assertTrue(cluster.count(Counter.UCX_WRITES) > 0, "to the others by UCX as ever");
      cluster.check("/unanswered", data, 3);
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

  /** There is a library, but none of its ways can be used. */
  @Test
  void whereUcxDoesNotStartAllGoesByTcp() throws Exception {
    Configuration conf = conf();
    conf.set("trunkline.ucx.tls", "nonsense");
    byte[] data = TestCluster.data(8, 10 << 20);
    try (TestCluster cluster = new TestCluster(conf, 3)) {
      cluster.write("/stock", data);
      cluster.check("/stock", data, 3);
      assertTrue(cluster.count(Fallback.UNAVAILABLE) > 0);
      assertEquals(0, cluster.count(Counter.UCX_WRITES));
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

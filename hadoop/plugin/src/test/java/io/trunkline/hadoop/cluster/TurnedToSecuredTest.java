package io.trunkline.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.stats.TransferStats.Counter;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A cluster that was open and is started again as a secured one, around a router that stays. */
@Timeout(300)
class TurnedToSecuredTest {
  private static final byte[] DATA = TestCluster.data(12, 3_000_001);

  /** Forwarders are shared by whoever has the same settings, and live on for a while. */
  private static Configuration own(Configuration conf, int window) {
    conf.setInt("trunkline.ndn.window.segments", window);
    return conf;
  }

  private static Configuration[] dataNodes(int window) {
    Configuration[] all = new Configuration[3];
    for (int i = 0; i < all.length; i++) {
      all[i] = own(new Configuration(false), window + i);
    }
    return all;
  }

  private static ExtendedBlock block(TestCluster cluster, String path) throws IOException {
    return SecuredReadsTest.blocks(cluster, path).get(0).getBlock();
  }

  /** Whether some bytes of the file's first segment stand in a packet. */
  private static boolean holdsData(byte[] packet) {
    String bytes = new String(packet, StandardCharsets.ISO_8859_1);
    byte[] some = Arrays.copyOfRange(DATA, 10_000, 10_100);
    return bytes.contains(new String(some, StandardCharsets.ISO_8859_1));
  }

  /** Waits until clients read by name again, after the router has been away. */
  private static void awaitByName(TestCluster cluster, String path) throws Exception {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(90);
    do {
      assertTrue(System.nanoTime() - deadline < 0, "nothing by name");
      cluster.reset();
      assertArrayEquals(DATA, cluster.read(path));
    } while (cluster.count(Counter.BYTES_READ) < DATA.length);
  }

  @Test
  void dataNodesAnswerNobodyWithoutATokenAndReadersGetRightBytes() throws Exception {
    try (TestRouter router = new TestRouter()) {
      Stranger stranger = new Stranger(router);
      Configuration open = own(TestCluster.conf(), 40);
      open.set("trunkline.ndn.face", router.face());
      try (TestCluster cluster = new TestCluster(open, 3, dataNodes(41))) {
        cluster.write("/asked", DATA);
        SecuredReadsTest.allByName(cluster, "/asked", DATA);
        Configuration tcp = new Configuration(cluster.fs().getConf());
        tcp.set("trunkline.transport", "tcp");
        try (FileSystem stock = FileSystem.newInstance(cluster.fs().getUri(), tcp);
            FSDataOutputStream out = stock.create(new Path("/never-asked"))) {
          out.write(DATA);
        }
        ExtendedBlock asked = block(cluster, "/asked");
        ExtendedBlock never = block(cluster, "/never-asked");
        byte[] seen = stranger.firstSegment(asked, 20_000);
        assertNotNull(seen, "what is open is open");
        assertTrue(holdsData(seen));
        for (String name : Stranger.plainNames(asked)) {
          if (!name.endsWith("content-key")) {
            assertNotNull(stranger.ask(name, 20_000), name);
          }
        }

        Configuration secured = own(SecuredClustersTest.encrypted(), 50);
        secured.set("trunkline.ndn.face", router.face());
        cluster.restart(secured, dataNodes(51));
        SecuredReadsTest.allByName(cluster, "/asked", DATA);
        SecuredReadsTest.allByName(cluster, "/never-asked", DATA);
        stranger.getsNothing(never);
        byte[] cached = stranger.firstSegment(asked, 20_000);
        assertNotNull(cached, "the router has it from the open time");
        assertTrue(holdsData(cached));
        cluster.write("/new", DATA);
        cluster.check("/new", DATA, 3);
        assertEquals(3, cluster.count(Counter.NAMED_RECEIVES));
        assertEquals(0, cluster.allFallbacks());

        // Its cache is empty then, as after `trunkline fwd cs erase`.
        router.stop();
        router.start();
        for (String path : new String[] {"/asked", "/new"}) {
          awaitByName(cluster, path);
          stranger.getsNothing(block(cluster, path));
        }
      }
    }
  }
}

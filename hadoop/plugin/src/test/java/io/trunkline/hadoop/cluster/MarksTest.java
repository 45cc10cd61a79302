package io.trunkline.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.conf.TrafficCategory;
import io.trunkline.hadoop.ndn.Native;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import java.io.IOException;
import java.net.DatagramSocket;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DFSOutputStream;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The marks that a cluster's sockets have, as the kernel tells them while files are open. */
@Timeout(180)
class MarksTest {
  private static final String AF21 = "0x48";
  private static final String AF31 = "0x68";
  private static final String CS1 = "0x20";
  private static final String CS3 = "0x60";
  private static final String NONE = "0";
  private static final Pattern SOCKET =
      Pattern.compile("ESTAB\\s+\\d+\\s+\\d+\\s+\\S+:\\d+\\s+\\S+:(\\d+)\\s+tos:(\\w+)");

  /** The marks of all connections that were opened to a port. */
  private static Set<String> marksToward(int port) throws IOException, InterruptedException {
    // Of a socket of IPv6 alone `tclass` would hold; of one of both versions, `tos` toward IPv4.
    Process ss = new ProcessBuilder("ss", "-tnH", "--tos").redirectErrorStream(true).start();
    String text = new String(ss.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertEquals(0, ss.waitFor(), text);
    Set<String> marks = new TreeSet<>();
    Matcher found = SOCKET.matcher(text);
    while (found.find()) {
      if (Integer.parseInt(found.group(1)) == port) {
        marks.add(found.group(2));
      }
    }
    return marks;
  }

  private static DatanodeInfo[] pipeline(FSDataOutputStream out) throws IOException {
    return ((DFSOutputStream) out.getWrappedStream()).getPipeline();
  }

  private static Configuration marking(String transports) {
    Configuration conf = TestCluster.conf();
    conf.set("trunkline.transport", transports);
    conf.set("trunkline.dscp", "on");
    return conf;
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "ndn,tcp"})
  void aPipelineByItsHopsAndRpcToTheNameNode(String transports) throws Exception {
    byte[] data = TestCluster.data(1, 3 << 20);
    try (TestCluster cluster = new TestCluster(marking(transports), 3)) {
      try (FSDataOutputStream out = cluster.fs().create(new Path("/file"))) {
        out.write(data);
        out.hflush();
        DatanodeInfo[] pipeline = pipeline(out);
        assertEquals(3, pipeline.length);
        if (transports.equals("tcp")) {
          assertEquals(Set.of(AF21), marksToward(pipeline[0].getXferPort()));
          assertEquals(Set.of(CS1), marksToward(pipeline[1].getXferPort()));
          assertEquals(Set.of(CS1), marksToward(pipeline[2].getXferPort()));
        } else {
          assertEquals(3, cluster.count(Counter.NAMED_RECEIVES));
        }
        assertEquals(Set.of(CS3), marksToward(cluster.mini().getNameNodePort()));
      }
      assertArrayEquals(data, cluster.read("/file"));
      assertEquals(0, cluster.count(Counter.MARKS_REFUSED));
    }
  }

  @Test
  void aReadAndAWriteOfOneClient() throws Exception {
    Configuration conf = marking("tcp");
    conf.setInt("dfs.replication", 1);
    try (TestCluster cluster = new TestCluster(conf, 1)) {
      int port = cluster.mini().getDataNodes().get(0).getXferPort();
      cluster.write("/file", TestCluster.data(2, 4 << 20));
      try (FSDataInputStream in = cluster.fs().open(new Path("/file"))) {
        assertNotEquals(-1, in.read());
        assertEquals(Set.of(AF31), marksToward(port));
        try (FSDataOutputStream out = cluster.fs().create(new Path("/other"))) {
          out.write(1);
          out.hflush();
          assertEquals(Set.of(AF21, AF31), marksToward(port));
        }
      }
    }
  }

  /** Client and DataNodes have the same settings, and share the faces of their JVM. */
  @Test
  void byNameEachCategoryHasAFaceOfItsOwn() throws Exception {
    byte[] data = TestCluster.data(3, 3 << 20);
    TestRouter router = new TestRouter();
    Configuration conf = marking("ndn,tcp");
    conf.set("trunkline.ndn.face", router.face());
    int port = URI.create(router.face()).getPort();
    try (TestCluster cluster = new TestCluster(conf, 3)) {
      cluster.write("/file", data);
      assertArrayEquals(data, cluster.read("/file"));
      assertEquals(3, cluster.count(Counter.NAMED_RECEIVES));
      assertTrue(cluster.count(Counter.BYTES_PULLED) >= 3L * data.length, "and came by name");
      assertEquals(data.length, cluster.count(Counter.BYTES_READ));
      assertEquals(0, cluster.allFallbacks());
      assertEquals(Set.of(AF21, AF31, CS1), marksToward(port));
    } finally {
      router.close();
    }
  }

  @ParameterizedTest
  @CsvSource({
    "on, udp://127.0.0.1:6399, false, 2",
    "off, udp://127.0.0.1:6399, false, 1",
    "on, '', false, 1",
    "on, unix:///nowhere.sock, false, 1",
    "on, udp://127.0.0.1:6399, true, 1",
  })
  void forwardersAreApartWhereTheirFacesCanBe(String dscp, String face, boolean listens, int nodes)
      throws IOException {
    Configuration conf = new Configuration(false);
    conf.set("trunkline.dscp", dscp);
    conf.set("trunkline.ndn.face", face);
    if (listens) {
      try (DatagramSocket free = new DatagramSocket(0)) {
        conf.set("trunkline.ndn.listen", "udp://127.0.0.1:" + free.getLocalPort());
      }
    }
    Settings settings = Settings.from(conf);
    try (NdnNode read = NdnNode.acquire(settings, TrafficCategory.CLIENT_READ);
        NdnNode write = NdnNode.acquire(settings, TrafficCategory.CLIENT_WRITE);
        NdnNode again = NdnNode.acquire(settings, TrafficCategory.CLIENT_WRITE)) {
      assertSame(write, again);
      assertEquals(nodes, read == write ? 1 : 2);
      boolean marked = Native.nodeStatus(write.handle()).contains("\"dscp\":18");
      assertEquals(nodes == 2, marked);
    }
  }

  @Test
  void withoutTheSettingNothingIsMarked() throws Exception {
    Configuration conf = marking("tcp");
    conf.set("trunkline.dscp", "off");
    try (TestCluster cluster = new TestCluster(conf, 3);
        FSDataOutputStream out = cluster.fs().create(new Path("/file"))) {
      out.write(1);
      out.hflush();
      for (DatanodeInfo dataNode : pipeline(out)) {
        assertEquals(Set.of(NONE), marksToward(dataNode.getXferPort()));
      }
      assertEquals(Set.of(NONE), marksToward(cluster.mini().getNameNodePort()));
    }
  }
}

package io.trunkline.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.conf.UcxSettings;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.ucx.UcxLibrary;
import io.trunkline.hadoop.ucx.hdfs.NodesMemory;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Secured clusters over UCX, which protects nothing itself: SASL and encryption of stock code go
 * through it. What has been sent is looked for in the memory that UCX sends from.
 */
@Timeout(300)
class UcxSecuredTest {
  /** Bytes that are sent over and over, so that some of them are left wherever they went. */
  private static final int MARK_BYTES = 64;

  private static int seed = 1000;

  private final byte[] inData = TestCluster.data(seed++, MARK_BYTES);
  private final byte[] data = new byte[10 << 20];

  /** The client's name stands in the header of each write and read, beside the block token. */
  private final byte[] inHeaders =
      HexFormat.of()
          .formatHex(TestCluster.data(seed++, MARK_BYTES / 2))
          .getBytes(StandardCharsets.US_ASCII);

  private UcxSettings ucx;
  private long byTcp;
  private long opened;
  private long accepted;

  @BeforeEach
  void needUcx() {
    ucx = Settings.from(TestCluster.conf()).ucx();
    UcxLibrary.Status status = UcxLibrary.probe(ucx);
    assumeTrue(status.available(), "no UCX here: " + status.reason());
    for (int at = 0; at < data.length; at += MARK_BYTES) {
      System.arraycopy(inData, 0, data, at, MARK_BYTES);
    }
    byTcp = TransferStats.get().connectionsOpened("tcp");
    opened = TransferStats.get().connectionsOpened("ucx");
    accepted = TransferStats.get().connectionsAccepted("ucx");
  }

  private Configuration overUcx(Configuration conf) {
    conf.set("trunkline.transport", "ucx,tcp");
    conf.set(
        "mapreduce.task.attempt.id", new String(inHeaders, StandardCharsets.US_ASCII).repeat(64));
    return conf;
  }

  /** Looks for headers while nothing larger has been sent, then for data. */
  private void putAndGet(TestCluster cluster, boolean seen) throws Exception {
    cluster.write("/small", Arrays.copyOf(data, 100));
    assertEquals(seen, NodesMemory.holds(ucx, inHeaders), "headers");
    cluster.write("/file", data);
    assertArrayEquals(data, cluster.read("/file"));
    assertEquals(seen, NodesMemory.holds(ucx, inData), "data");
    // Three blocks, three hops each, and a read at least. What each is, a handshake hides.
    assertTrue(TransferStats.get().connectionsOpened("ucx") - opened >= 10);
    assertTrue(TransferStats.get().connectionsAccepted("ucx") - accepted >= 10);
    assertEquals(0, cluster.allFallbacks());
    assertEquals(byTcp, TransferStats.get().connectionsOpened("tcp"));
  }

  /** Without this one the others show nothing; as over TCP, block tokens alone seal nothing. */
  @Test
  void withBlockTokensAloneAllCanBeRead() throws Exception {
    try (TestCluster cluster = new TestCluster(overUcx(SecuredClustersTest.tokens()), 3)) {
      putAndGet(cluster, true);
    }
  }

  @Test
  void encryptionIsStockCodesAlsoWithTheResolver() throws Exception {
    try (TestCluster cluster = new TestCluster(overUcx(SecuredClustersTest.encrypted()), 3)) {
      putAndGet(cluster, false);
    }
  }

  @ParameterizedTest
  @CsvSource({"authentication, true", "integrity, true", "privacy, false"})
  void sasl(String qop, boolean seen) throws Exception {
    try (TestKdc kdc = new TestKdc()) {
      Configuration conf = overUcx(SecuredClustersTest.tokens());
      kdc.secure(conf, qop);
      try (TestCluster cluster = new TestCluster(conf, 3)) {
        putAndGet(cluster, seen);
      }
    }
  }
}

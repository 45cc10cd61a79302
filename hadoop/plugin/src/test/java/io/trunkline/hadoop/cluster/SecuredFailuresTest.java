package io.trunkline.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import java.io.IOException;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DFSTestUtil;
import org.apache.hadoop.hdfs.MiniDFSCluster.DataNodeProperties;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.security.token.block.BlockKey;
import org.apache.hadoop.hdfs.security.token.block.BlockTokenIdentifier;
import org.apache.hadoop.hdfs.security.token.block.BlockTokenSecretManager;
import org.apache.hadoop.hdfs.security.token.block.SecurityTestUtil;
import org.apache.hadoop.hdfs.server.blockmanagement.BlockManager;
import org.apache.hadoop.hdfs.server.blockmanagement.DatanodeDescriptor;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.security.token.Token;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;

/** Block keys that are rolled and tokens that expire while files are written and read by name. */
@Timeout(300)
@TestInstance(Lifecycle.PER_CLASS)
class SecuredFailuresTest {
  private static final byte[] DATA = TestCluster.data(11, 20 << 20);
  private static final long LONG_MS = 3_600_000;

  /** Longer than this machine is up, or the NameNode would roll its keys by itself. */
  private static final long KEYS_MS = TimeUnit.DAYS.toMillis(3650);

  /** How long tokens live that are to expire; what is done with them meanwhile takes less. */
  private static final int BRIEF_MS = 5000;

  private TestRouter router;
  private Stranger stranger;
  private TestCluster cluster;

  @BeforeAll
  void start() throws IOException {
    router = new TestRouter();
    stranger = new Stranger(router);
    Configuration conf = SecuredClustersTest.encrypted();
    conf.set("trunkline.ndn.face", router.face());
    conf.setLong("dfs.block.access.key.update.interval", TimeUnit.MILLISECONDS.toMinutes(KEYS_MS));
    cluster = new TestCluster(conf, 4);
  }

  @AfterAll
  void stop() {
    cluster.close();
    router.close();
  }

  @BeforeEach
  void reset() {
    cluster.reset();
  }

  @AfterEach
  void tokensLiveLong() {
    tokensLive(LONG_MS);
  }

  private BlockManager blockManager() {
    return cluster.mini().getNamesystem().getBlockManager();
  }

  private BlockTokenSecretManager keys() {
    return blockManager().getBlockTokenSecretManager();
  }

  private BlockTokenSecretManager keys(DataNode dataNode) {
    String pool = cluster.mini().getNamesystem().getBlockPoolId();
    return dataNode.getBlockPoolTokenSecretManager().get(pool);
  }

  private void tokensLive(long ms) {
    SecurityTestUtil.setBlockTokenLifetime(keys(), ms);
  }

  private static void await(String what, BooleanSupplier done) throws InterruptedException {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(90);
    while (!done.getAsBoolean()) {
      assertTrue(System.nanoTime() - deadline < 0, what);
      TimeUnit.MILLISECONDS.sleep(20);
    }
  }

  /** The NameNode makes tokens with another key, and DataNodes hear of it by a heartbeat. */
  private void rollKeys() throws Exception {
    int before = keys().getCurrentKey().getKeyId();
    assertTrue(keys().updateKeys(Long.MAX_VALUE));
    assertNotEquals(before, keys().getCurrentKey().getKeyId());
    for (DatanodeDescriptor each : blockManager().getDatanodeManager().getDatanodes()) {
      each.setNeedKeyUpdate(true);
    }
    for (BlockKey key : keys().exportKeys().getAllKeys()) {
      for (DataNode dataNode : cluster.mini().getDataNodes()) {
        await(dataNode + " has key " + key.getKeyId(), () -> keys(dataNode).hasKey(key.getKeyId()));
      }
    }
  }

  /** As {@link #rollKeys}; the next time they hear of keys, DataNodes drop the one that was. */
  private int retireKey() throws Exception {
    int retired = keys().getCurrentKey().getKeyId();
    // A key is kept for the sum of both after its last token has been made.
    tokensLive(1 - KEYS_MS);
    rollKeys();
    tokensLive(LONG_MS);
    return retired;
  }

  private void drop(int retired) throws Exception {
    rollKeys();
    for (DataNode dataNode : cluster.mini().getDataNodes()) {
      await(dataNode + " has dropped key " + retired, () -> !keys(dataNode).hasKey(retired));
    }
  }

  private static int keyId(Token<BlockTokenIdentifier> token) throws IOException {
    return token.decodeIdentifier().getKeyId();
  }

  private LocatedBlock block(String path, int n) throws IOException {
    return SecuredReadsTest.blocks(cluster, path).get(n);
  }

  private byte[] ask(LocatedBlock block) throws IOException {
    return SecuredReadsTest.ask(cluster, block.getBlock(), block.getBlockToken());
  }

  @Test
  void aWriteGoesOnWhileKeysAreRolled() throws Exception {
    try (FSDataOutputStream out = cluster.fs().create(new Path("/rolled"))) {
      out.write(DATA, 0, 3_000_000);
      out.hflush();
      int first = keyId(DFSTestUtil.getBlockToken(out));
      rollKeys();
      rollKeys();
      out.write(DATA, 3_000_000, 1_000_000);
      out.hflush();
      assertEquals(first, keyId(DFSTestUtil.getBlockToken(out)), "the same block");
      out.write(DATA, 4_000_000, 6_000_000);
      out.hflush();
      int second = keyId(DFSTestUtil.getBlockToken(out));
      assertNotEquals(first, second, "another block");
      drop(retireKey());
      out.write(DATA, 10_000_000, DATA.length - 10_000_000);
      out.hflush();
      assertNotEquals(second, keyId(DFSTestUtil.getBlockToken(out)), "and one more");
    }
    assertEquals(3, cluster.count(Counter.NAMED_WRITES));
    assertEquals(9, cluster.count(Counter.NAMED_RECEIVES));
    assertEquals(0, cluster.count(Counter.BYTES_INLINE));
    assertEquals(0, cluster.count(Counter.HANDSHAKES_REFUSED));
    assertEquals(0, cluster.allFallbacks());
    cluster.check("/rolled", DATA, 3);
    assertEquals(DATA.length, cluster.count(Counter.BYTES_READ));
    assertEquals(0, cluster.allFallbacks());
    stranger.getsNothing(block("/rolled", 0).getBlock());
  }

  /** One file whose key is the write's, and one whose key is made of a block key. */
  @Test
  void readersGoOnWhileKeysAreRolledAndDropped() throws Exception {
    cluster.write("/written", DATA);
    try (FSDataOutputStream out = cluster.fs().create(new Path("/flushed"))) {
      out.write(DATA, 0, 100_001);
      out.hflush();
      out.write(DATA, 100_001, DATA.length - 100_001);
    }
    cluster.reset();
    LocatedBlock old = block("/written", 0);
    try (FSDataInputStream written = cluster.fs().open(new Path("/written"));
        FSDataInputStream flushed = cluster.fs().open(new Path("/flushed"))) {
      byte[] read = new byte[DATA.length];
      byte[] other = new byte[DATA.length];
      written.readFully(read, 0, 1000);
      flushed.readFully(other, 0, 1000);
      assertEquals(SecuredReadsTest.WRITE_ID, ask(block("/written", 0)).length);
      assertEquals(SecuredReadsTest.BLOCK_KEY_ID, ask(block("/flushed", 0)).length);
      int retired = retireKey();
      assertEquals(retired, keyId(old.getBlockToken()));
      written.readFully(read, 1000, 3_000_000);
      flushed.readFully(other, 1000, 3_000_000);
      assertEquals(0, cluster.allFallbacks());
      assertNotNull(ask(old), "its token has not expired, and the key is known");
      drop(retired);
      int left = 3_001_000;
      written.readFully(read, left, read.length - left);
      flushed.readFully(other, left, other.length - left);
      assertArrayEquals(DATA, read);
      assertArrayEquals(DATA, other);
    }
    assertEquals(2L * DATA.length, cluster.count(Counter.BYTES_READ), "all of it by name");
    assertEquals(0, cluster.count(Fallback.READ_FAILED));
    assertEquals(0, cluster.count(Counter.PULL_TIMEOUTS));
    cluster.reset();
    assertNull(ask(old), "the key that its token was made with is known no more");
    assertTrue(cluster.count(Counter.READERS_REFUSED) > 0);
    stranger.getsNothing(old.getBlock());
    SecuredReadsTest.allByName(cluster, "/flushed", DATA);
  }

  /** A writer that is slow, and a reader whose file stays open, as HBase's do. */
  @Test
  void tokensThatExpireEndNoWriteAndNoRead() throws Exception {
    cluster.write("/read", DATA);
    cluster.reset();
    tokensLive(BRIEF_MS);
    LocatedBlock old = block("/read", 0);
    assertNotNull(ask(old));
    byte[] read = new byte[DATA.length];
    try (FSDataInputStream in = cluster.fs().open(new Path("/read"));
        FSDataOutputStream out = cluster.fs().create(new Path("/slow"))) {
      in.readFully(read, 0, 1000);
      out.write(DATA, 0, 1_000_000);
      out.hflush();
      Token<BlockTokenIdentifier> first = DFSTestUtil.getBlockToken(out);
      for (int at = 1_000_000; !expired(first) || !expired(old.getBlockToken()); at++) {
        assertTrue(at < 3_000_000);
        out.write(DATA, at, 1);
        out.hflush();
        TimeUnit.MILLISECONDS.sleep(50);
      }
      tokensLive(LONG_MS);
      int at = (int) out.getPos();
      out.write(DATA, at, 3_000_000 - at);
      out.hflush();
      assertEquals(first, DFSTestUtil.getBlockToken(out), "the block goes on");
      in.readFully(read, 1000, 1_000_000);
      assertNull(ask(old), "a token that has expired");
      assertEquals(0, cluster.allFallbacks());

      out.write(DATA, 3_000_000, 7_000_000);
      out.hflush();
      assertNotEquals(first, DFSTestUtil.getBlockToken(out), "another block has its own");
      in.readFully(read, 1_001_000, read.length - 1_001_000);
      assertArrayEquals(DATA, read);
      out.write(DATA, 10_000_000, DATA.length - 10_000_000);
    }
    assertEquals(3, cluster.count(Counter.NAMED_WRITES));
    assertEquals(9, cluster.count(Counter.NAMED_RECEIVES));
    assertEquals(DATA.length, cluster.count(Counter.BYTES_READ), "by name, with new tokens");
    // Stock code is told by the stock port that the token has expired, and gets another one.
    assertEquals(1, cluster.count(Fallback.NO_CONTENT_KEY));
    assertEquals(1, cluster.count(Fallback.SECURED_OTHER));
    assertEquals(2, cluster.allFallbacks());
    assertTrue(cluster.count(Counter.READERS_REFUSED) > 0);
    cluster.check("/slow", DATA, 3);
    assertEquals(2L * DATA.length, cluster.count(Counter.BYTES_READ));
    stranger.getsNothing(old.getBlock());
    stranger.getsNothing(block("/slow", 0).getBlock());
  }

  private static boolean expired(Token<BlockTokenIdentifier> token) throws IOException {
    return SecurityTestUtil.isBlockTokenExpired(token);
  }

  /** The pipeline is set up again with a new token, by name as well. */
  @Test
  void aDataNodeDiesAfterTheTokenHasExpired() throws Exception {
    byte[] data = Arrays.copyOf(DATA, 7 << 20);
    DataNodeProperties stopped;
    tokensLive(BRIEF_MS);
    try (FSDataOutputStream out = cluster.fs().create(new Path("/dies"))) {
      out.write(data, 0, 3 << 20);
      out.hflush();
      Token<BlockTokenIdentifier> first = DFSTestUtil.getBlockToken(out);
      tokensLive(LONG_MS);
      while (!expired(first)) {
        TimeUnit.MILLISECONDS.sleep(20);
      }
      rollKeys();
      cluster.reset();
      stopped = cluster.stopInPipeline(out, 1);
      out.write(data, 3 << 20, 4 << 20);
      out.hflush();
      assertNotEquals(first, DFSTestUtil.getBlockToken(out));
      assertTrue(cluster.count(Counter.NAMED_WRITES) >= 1, "by name again");
      assertEquals(0, cluster.count(Counter.HANDSHAKES_REFUSED));
    }
    cluster.check("/dies", data, 3);
    assertTrue(cluster.mini().restartDataNode(stopped, true));
    cluster.mini().waitActive();
  }
}

package io.trunkline.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.ndn.Native;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.DFSTestUtil;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.hdfs.protocol.LocatedBlock;
import org.apache.hadoop.hdfs.security.token.block.BlockPoolTokenSecretManager;
import org.apache.hadoop.hdfs.security.token.block.BlockTokenIdentifier;
import org.apache.hadoop.hdfs.security.token.block.BlockTokenIdentifier.AccessMode;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.util.VersionInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Reads by name in clusters with block tokens: by who has a token that reads, and nobody else. */
@Timeout(300)
class SecuredReadsTest {
  /** Two whole blocks, and one that ends in the middle of a packet. */
  private static final byte[] DATA = TestCluster.data(5, (20 << 20) + 12_345);

  /** Ids of a write's own key, and of one made with a block key. */
  static final int WRITE_ID = 8;

  /**
   * Clients before Hadoop 3.5 send the first chunk of a block in a packet of its own, but the
   * file's first.
   */
  private static final boolean SHORT_FIRST_PACKET =
      VersionInfo.getVersion().startsWith("3.3.") || VersionInfo.getVersion().startsWith("3.4.");

  static final int BLOCK_KEY_ID = 20;

  static List<LocatedBlock> blocks(TestCluster cluster, String path) throws IOException {
    return DFSTestUtil.getAllBlocks(cluster.fs(), new Path(path));
  }

  /** Asks for the key of a block; returns its id, or null when it is refused. */
  private static byte[] ask(TestCluster cluster, ExtendedBlock block, byte[] id, byte[] password)
      throws IOException {
    try (NdnNode node = NdnNode.acquire(Settings.from(cluster.fs().getConf()), null)) {
      String version =
          node.names()
              .version(block.getBlockPoolId(), block.getBlockId(), block.getGenerationStamp());
      byte[][] key = new byte[2][];
      long[] told = Native.contentKey(node.handle(), version, id, password, key, 3000);
      assertEquals(told == null, key[0] == null);
      assertEquals(told == null, key[1] == null);
      return key[0];
    }
  }

  static byte[] ask(TestCluster cluster, ExtendedBlock block, Token<?> token) throws IOException {
    return ask(cluster, block, token.getIdentifier(), token.getPassword());
  }

  static void allByName(TestCluster cluster, String path, byte[] data) throws Exception {
    cluster.reset();
    assertArrayEquals(data, cluster.read(path));
    assertEquals(data.length, cluster.count(Counter.BYTES_READ));
    assertEquals(0, cluster.allFallbacks());
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aFileIsReadByNameAlsoAfterARestart(boolean encrypted) throws Exception {
    Configuration conf = encrypted ? SecuredClustersTest.encrypted() : SecuredClustersTest.tokens();
    try (TestCluster cluster = new TestCluster(conf, 3)) {
      cluster.write("/file", DATA);
      allByName(cluster, "/file", DATA);
      LocatedBlock whole = blocks(cluster, "/file").get(0);
      for (LocatedBlock block : blocks(cluster, "/file")) {
        int id = ask(cluster, block.getBlock(), block.getBlockToken()).length;
        if (block.getStartOffset() == 0 || !SHORT_FIRST_PACKET) {
          assertEquals(WRITE_ID, id, "the write's");
        } else {
          assertEquals(BLOCK_KEY_ID, id, "none of its packets is of whole segments");
        }
      }
      try (FSDataOutputStream out = cluster.fs().create(new Path("/flushed"))) {
        out.write(DATA, 0, 100_001);
        out.hflush();
        out.write(DATA, 100_001, 1_900_000);
      }
      allByName(cluster, "/flushed", Arrays.copyOf(DATA, 2_000_001));
      LocatedBlock flushed = blocks(cluster, "/flushed").get(0);
      assertEquals(
          BLOCK_KEY_ID,
          ask(cluster, flushed.getBlock(), flushed.getBlockToken()).length,
          "what came after the flush is not what the write sealed under the block's name");

      assertTrue(cluster.mini().restartDataNodes(true));
      cluster.mini().waitActive();
      allByName(cluster, "/file", DATA);
      whole = blocks(cluster, "/file").get(0);
      assertEquals(
          BLOCK_KEY_ID, ask(cluster, whole.getBlock(), whole.getBlockToken()).length, "made anew");
    }
  }

  /** As in a rolling restart while HBase has a file open: DataNodes forget the write's key. */
  @Test
  void aFileThatIsOpenIsReadOnAfterARestart() throws Exception {
    Configuration conf = SecuredClustersTest.tokens();
    // However slow the machine: the read is to go on long before that.
    conf.setInt("trunkline.ndn.pull.timeout.ms", 60_000);
    byte[] data = Arrays.copyOf(DATA, TestCluster.BLOCK_BYTES);
    try (TestCluster cluster = new TestCluster(conf, 3)) {
      cluster.write("/open", data);
      LocatedBlock block = blocks(cluster, "/open").get(0);
      assertEquals(WRITE_ID, ask(cluster, block.getBlock(), block.getBlockToken()).length);
      cluster.reset();
      try (FSDataInputStream in = cluster.fs().open(new Path("/open"))) {
        byte[] read = new byte[data.length];
        in.readFully(read, 0, 1000);
        assertTrue(cluster.mini().restartDataNodes(true));
        cluster.mini().waitActive();
        in.readFully(read, 1000, read.length - 1000);
        assertArrayEquals(data, read);
      }
      assertEquals(data.length, cluster.count(Counter.BYTES_READ), "all of it by name");
      assertEquals(1, cluster.count(Counter.KEYS_RENEWED));
      assertEquals(0, cluster.count(Counter.PULL_TIMEOUTS));
      assertEquals(0, cluster.count(Fallback.READ_FAILED));
    }
  }

  /** Keys may be what they do not know any more: that says nothing of other blocks. */
  @Test
  void blocksWhoseKeysNobodyKnowsDoNotStopThePlane() throws Exception {
    Configuration conf = SecuredClustersTest.tokens();
    conf.setInt("dfs.client.max.block.acquire.failures", 1);
    conf.setInt("dfs.client.retry.window.base", 1);
    List<FSDataInputStream> open = new ArrayList<>();
    try (TestCluster cluster = new TestCluster(conf, 3)) {
      byte[] data = Arrays.copyOf(DATA, 2_000_000);
      for (int i = 0; i < 3; i++) {
        cluster.write("/silent" + i, data);
        open.add(cluster.fs().open(new Path("/silent" + i)));
        open.get(i).readFully(new byte[1000]);
      }
      cluster.reset();
      try (NdnNode node = NdnNode.acquire(Settings.from(cluster.fs().getConf()), null)) {
        cluster.mini().shutdownDataNodes();
        for (FSDataInputStream in : open) {
          // Past what has been asked for already: none of them gets anything any more.
          in.seek(data.length - 1000);
          assertThrows(IOException.class, () -> in.readFully(new byte[1000]));
        }
        assertEquals(open.size(), cluster.count(Fallback.READ_FAILED));
        assertEquals(open.size(), cluster.count(Counter.PULL_TIMEOUTS));
        assertNull(node.health().paused("another block"));
      }
      for (FSDataInputStream in : open) {
        in.close();
      }
    }
  }

  @Test
  void appendsAndSmallFiles() throws Exception {
    try (TestCluster cluster = new TestCluster(SecuredClustersTest.tokens(), 3)) {
      for (int length : new int[] {1, 511, 64_512, 64_513, 200_000}) {
        byte[] data = Arrays.copyOf(DATA, length);
        cluster.write("/small" + length, data);
        allByName(cluster, "/small" + length, data);
      }
      cluster.write("/grows", Arrays.copyOf(DATA, 1_000_003));
      allByName(cluster, "/grows", Arrays.copyOf(DATA, 1_000_003));
      try (FSDataOutputStream out = cluster.append(new Path("/grows"))) {
        out.write(DATA, 1_000_003, 9_000_000);
      }
      allByName(cluster, "/grows", Arrays.copyOf(DATA, 10_000_003));
    }
  }

  /** Such a replica came by stock means, and nobody has a key of its write. */
  @Test
  void aReplicaThatWasCopied() throws Exception {
    byte[] data = Arrays.copyOf(DATA, 3_000_001);
    try (TestCluster cluster = new TestCluster(SecuredClustersTest.tokens(), 3)) {
      Path path = new Path("/copied");
      try (FSDataOutputStream out =
          cluster.fs().create(path, true, 4096, (short) 1, TestCluster.BLOCK_BYTES)) {
        out.write(data);
      }
      int first = blocks(cluster, "/copied").get(0).getLocations()[0].getXferPort();
      cluster.fs().setReplication(path, (short) 3);
      DFSTestUtil.waitReplication(cluster.fs(), path, (short) 3);
      for (int i = 0; i < cluster.mini().getDataNodes().size(); i++) {
        if (cluster.mini().getDataNodes().get(i).getXferPort() == first) {
          cluster.mini().stopDataNode(i);
        }
      }
      allByName(cluster, "/copied", data);
    }
  }

  @Test
  void whoHasNoTokenThatReadsGetsNoKey() throws Exception {
    try (TestCluster cluster = new TestCluster(SecuredClustersTest.tokens(), 3)) {
      cluster.write("/one", Arrays.copyOf(DATA, 100_000));
      cluster.write("/two", Arrays.copyOf(DATA, 100_000));
      LocatedBlock one = blocks(cluster, "/one").get(0);
      LocatedBlock two = blocks(cluster, "/two").get(0);
      ExtendedBlock block = one.getBlock();
      Token<BlockTokenIdentifier> right = one.getBlockToken();
      assertNotNull(ask(cluster, block, right));

      cluster.reset();
      assertNull(ask(cluster, block, two.getBlockToken()), "a token of another block");
      assertTrue(cluster.count(Counter.READERS_REFUSED) > 0);

      byte[] forged = right.getPassword().clone();
      forged[0] ^= 1;
      assertNull(ask(cluster, block, right.getIdentifier(), forged), "a forged password");
      byte[] changed = right.getIdentifier().clone();
      changed[changed.length - 1] ^= 1;
      assertNull(ask(cluster, block, changed, right.getPassword()), "another identifier");
      assertNull(ask(cluster, block, new byte[] {1, 2, 3}, right.getPassword()), "no identifier");

      DataNode dataNode = cluster.mini().getDataNodes().get(0);
      BlockPoolTokenSecretManager secrets = dataNode.getBlockPoolTokenSecretManager();
      Token<BlockTokenIdentifier> writes =
          secrets.generateToken(
              block, EnumSet.of(AccessMode.WRITE), new StorageType[0], new String[0]);
      assertNull(ask(cluster, block, writes), "a token that does not read");
      Token<BlockTokenIdentifier> reads =
          secrets.generateToken(
              block, EnumSet.of(AccessMode.READ), new StorageType[0], new String[0]);
      assertNotNull(ask(cluster, block, reads));

      BlockTokenIdentifier nobodys = nobodys(block, secrets, reads);
      byte[] password = secrets.retrievePassword(nobodys);
      assertNull(ask(cluster, block, nobodys.getBytes(), password), "none that is issued");

      ExtendedBlock other = new ExtendedBlock(block);
      other.setGenerationStamp(block.getGenerationStamp() + 1);
      assertNull(ask(cluster, other, right), "a generation that is not there");
    }
  }

  /** What the DataNodes' own secrets are made of, with the right to read. */
  private static BlockTokenIdentifier nobodys(
      ExtendedBlock block, BlockPoolTokenSecretManager secrets, Token<BlockTokenIdentifier> of)
      throws IOException {
    BlockTokenIdentifier nobodys =
        new BlockTokenIdentifier(
            "trunkline content key",
            block.getBlockPoolId(),
            block.getBlockId(),
            EnumSet.of(AccessMode.READ),
            new StorageType[0],
            new String[0],
            false);
    nobodys.setKeyId(of.decodeIdentifier().getKeyId());
    nobodys.setExpiryDate(Long.MAX_VALUE);
    return nobodys;
  }

  /** That somebody gets something by them in an open cluster is in {@link TurnedToSecuredTest}. */
  @Test
  void aPlainNameGetsNothing() throws Exception {
    try (TestRouter router = new TestRouter()) {
      Configuration conf = SecuredClustersTest.tokens();
      conf.set("trunkline.ndn.face", router.face());
      try (TestCluster cluster = new TestCluster(conf, 3)) {
        cluster.write("/plain", Arrays.copyOf(DATA, 100_000));
        new Stranger(router).getsNothing(blocks(cluster, "/plain").get(0).getBlock());
      }
    }
  }

  /** The others are asked then, and the reader notices nothing. */
  @Test
  void aCorruptReplicaIsNotServed() throws Exception {
    byte[] data = Arrays.copyOf(DATA, TestCluster.BLOCK_BYTES);
    try (TestCluster cluster = new TestCluster(SecuredClustersTest.tokens(), 3)) {
      cluster.write("/corrupt", data);
      ExtendedBlock block = blocks(cluster, "/corrupt").get(0).getBlock();
      for (DataNode dataNode : cluster.mini().getDataNodes().subList(0, 2)) {
        File file = new File(dataNode.getFSDataset().getBlockLocalPathInfo(block).getBlockPath());
        try (RandomAccessFile bytes = new RandomAccessFile(file, "rw")) {
          for (int at = 100; at < data.length; at += 500_000) {
            bytes.seek(at);
            bytes.write(~data[at]);
          }
        }
      }
      allByName(cluster, "/corrupt", data);
    }
  }
}

package io.trunkline.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.ndn.Native;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.ndn.wire.SegmentHeader;
import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import java.io.IOException;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.DFSOutputStream;
import org.apache.hadoop.hdfs.DFSTestUtil;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.util.DataChecksum;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.MethodOrderer.OrderAnnotation;
import org.junit.jupiter.api.Order;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.TestMethodOrder;
import org.junit.jupiter.api.Timeout;

/** A client and three DataNodes, each with a forwarder of its own, around one router. */
@Timeout(300)
@TestMethodOrder(OrderAnnotation.class)
@TestInstance(Lifecycle.PER_CLASS)
class RouterTest {
  private static final int SEGMENT = 64512;
  private static final int CHUNK = 512;

  private TestRouter router;
  private TestCluster cluster;
  private Configuration conf;

  @BeforeAll
  void start() throws IOException {
    router = new TestRouter();
    conf = TestCluster.conf();
    conf.set("trunkline.ndn.face", router.face());
    // Forwarders are shared by whoever has the same settings.
    Configuration[] own = new Configuration[3];
    for (int i = 0; i < own.length; i++) {
      own[i] = new Configuration(false);
      own[i].setInt("trunkline.ndn.window.segments", 33 + i);
    }
    cluster = new TestCluster(conf, 3, own);
  }

  @AfterAll
  void stop() {
    if (cluster != null) {
      cluster.close();
    }
    router.close();
  }

  @BeforeEach
  void reset() {
    cluster.reset();
  }

  private ExtendedBlock block(String path) throws IOException {
    return DFSTestUtil.getAllBlocks(cluster.fs(), new Path(path)).get(0).getBlock();
  }

  /** Has the router's cache hold other bytes under the names of a block's segments. */
  private void poison(ExtendedBlock block, byte[] old) throws Exception {
    Configuration other = new Configuration(conf);
    other.setInt("trunkline.ndn.window.segments", 60);
    Configuration third = new Configuration(conf);
    third.setInt("trunkline.ndn.window.segments", 61);
    try (NdnNode writer = NdnNode.acquire(Settings.from(other), null);
        NdnNode reader = NdnNode.acquire(Settings.from(third), null)) {
      String name =
          writer
              .names()
              .version(block.getBlockPoolId(), block.getBlockId(), block.getGenerationStamp());
      long producer = Native.producerOpen(writer.handle(), name, 64512, 256, null, 0);
      int segments = (old.length - 1) / SEGMENT + 1;
      byte[] header = new byte[SegmentHeader.BYTES];
      DataChecksum checksum = DataChecksum.newDataChecksum(DataChecksum.Type.CRC32C, CHUNK);
      for (int n = 0; n < segments; n++) {
        int length = Math.min(SEGMENT, old.length - n * SEGMENT);
        byte[] body = new byte[checksum.getChecksumSize(length) + length];
        System.arraycopy(old, n * SEGMENT, body, body.length - length, length);
        checksum.calculateChunkedSums(body, body.length - length, length, body, 0);
        new SegmentHeader(2, CHUNK, length, (long) n * SEGMENT).encode(header);
        Native.producerPublish(
            producer,
            n,
            header,
            body,
            0,
            body.length - length,
            body.length - length,
            length,
            false,
            null,
            0);
      }
      long pull =
          Native.pullOpen(reader.handle(), name, 64512, 0, 16, false, segments - 1, null, 0);
      byte[] to = new byte[SegmentHeader.MAX_BODY_BYTES];
      for (int n = 0; n < segments; n++) {
        assertTrue(Native.pullTake(pull, n, header, to, 0, to.length, null, 0, 20_000) > 0);
      }
      Native.pullClose(pull);
      Native.producerClose(producer, 0);
    }
  }

  /**
   * Has the router hold other bytes of the block that the NameNode gives out next, as after a
   * rollback.
   */
  private ExtendedBlock poisonNext(byte[] old) throws Exception {
    cluster.write("/before", TestCluster.data(50, 1000));
    ExtendedBlock before = block("/before");
    ExtendedBlock next =
        new ExtendedBlock(
            before.getBlockPoolId(), before.getBlockId() + 1, 0, before.getGenerationStamp() + 1);
    poison(next, old);
    return next;
  }

  private void assertCameAgain(ExtendedBlock poisoned, String path) throws IOException {
    ExtendedBlock block = block(path);
    assertEquals(poisoned.getBlockId(), block.getBlockId());
    assertEquals(poisoned.getGenerationStamp(), block.getGenerationStamp());
  }

  @Test
  void aReaderOfABlockThatCameAgainGetsTheNewBytes() throws Exception {
    int length = 5 << 20;
    ExtendedBlock poisoned = poisonNext(TestCluster.data(55, length));
    byte[] data = TestCluster.data(56, length);
    // By TCP, so that the router has nothing of it.
    Configuration tcp = new Configuration(conf);
    tcp.set("trunkline.transport", "tcp");
    try (FileSystem other = FileSystem.newInstance(cluster.fs().getUri(), tcp);
        FSDataOutputStream out = other.create(new Path("/read-again"))) {
      out.write(data);
    }
    assertCameAgain(poisoned, "/read-again");
    cluster.reset();
    assertArrayEquals(data, cluster.read("/read-again"));
    assertEquals(length, cluster.count(Counter.BYTES_READ), "by name");
    assertEquals(0, cluster.allFallbacks());
  }

  @Test
  void replicasOfABlockThatCameAgainAreTheNewBytes() throws Exception {
    int length = 5 << 20;
    ExtendedBlock poisoned = poisonNext(TestCluster.data(51, length));
    byte[] data = TestCluster.data(52, length);
    cluster.write("/again", data);
    assertCameAgain(poisoned, "/again");
    cluster.check("/again", data, 3);
    assertTrue(cluster.count(Counter.BYTES_PULLED) >= 3L * length, "and they came by name");
    assertEquals(0, cluster.count(Counter.BODIES_AGAIN));
  }

  /** Small packets go on the connection, from one DataNode to the next, and nothing else does. */
  @Test
  void flushesAndSmallFilesGoInline() throws Exception {
    Configuration ofClient = new Configuration(conf);
    ofClient.setInt("trunkline.ndn.inline.bytes", 16384);
    byte[] log = TestCluster.data(8, 100 * 100);
    byte[] large = TestCluster.data(9, 3 << 20);
    try (FileSystem client = FileSystem.newInstance(cluster.fs().getUri(), ofClient)) {
      try (FSDataOutputStream out = client.create(new Path("/log"))) {
        for (int at = 0; at < log.length; at += 100) {
          out.write(log, at, 100);
          out.hflush();
        }
      }
      assertEquals(0, cluster.count(Counter.SEGMENTS_PUBLISHED));
      assertEquals(1, cluster.count(Counter.NAMED_WRITES));
      assertEquals(3, cluster.count(Counter.NAMED_RECEIVES));
      // Each flush, and at the end the chunk that is not full: at the client and at the two
      // DataNodes that pass them on.
      assertEquals(3 * 101, cluster.count(Counter.INLINE_BODIES));
      long inline = cluster.count(Counter.BYTES_INLINE);
      try (FSDataOutputStream out = client.create(new Path("/large"))) {
        out.write(large);
      }
      assertEquals(inline, cluster.count(Counter.BYTES_INLINE));
      assertTrue(cluster.count(Counter.BYTES_PUBLISHED) > large.length);
    }
    assertEquals(0, cluster.count(Counter.INLINE_ASKED));
    assertEquals(0, cluster.allFallbacks());
    cluster.check("/log", log, 3);
    cluster.check("/large", large, 3);
  }

  /** The last one, as for a while after it not every DataNode is written to by name. */
  @Test
  @Order(Integer.MAX_VALUE)
  void aRouterThatStaysAwayReplacesNoDataNode() throws Exception {
    byte[] data = TestCluster.data(53, 6 << 20);
    Path path = new Path("/outage");
    try (FSDataOutputStream out = cluster.fs().create(path)) {
      out.write(data, 0, 2_000_000);
      out.hflush();
      DFSOutputStream stream = (DFSOutputStream) out.getWrappedStream();
      DatanodeInfo[] pipeline = stream.getPipeline();
      ExtendedBlock before = block("/outage");
      router.stop();
      out.write(data, 2_000_000, 1_500_000);
      out.hflush();
      out.write(data, 3_500_000, 1_500_000);
      out.hsync();
      assertArrayEquals(Arrays.copyOf(data, 5_000_000), cluster.read("/outage"));
      router.start();
      out.write(data, 5_000_000, data.length - 5_000_000);
      out.hflush();
      assertArrayEquals(pipeline, stream.getPipeline());
      assertEquals(
          before.getGenerationStamp(), block("/outage").getGenerationStamp(), "no recovery");
    }
    cluster.check("/outage", data, 3);
    assertTrue(cluster.count(Counter.INLINE_ASKED) > 0);
    assertTrue(cluster.count(Counter.BODIES_AGAIN) > 0);
    assertEquals(1, cluster.count(Fallback.WRITE_STALLED));
    awaitByName();
  }

  /** The plane is used again once it is there again. */
  private void awaitByName() throws Exception {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
    byte[] data = TestCluster.data(54, 300_000);
    do {
      assertTrue(System.nanoTime() - deadline < 0, "no write by name");
      cluster.reset();
      cluster.write("/after", data);
    } while (cluster.count(Counter.NAMED_WRITES) == 0);
    cluster.check("/after", data, 3);
  }
}

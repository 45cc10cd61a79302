package io.trunkline.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.client.HdfsDataOutputStream;
import org.apache.hadoop.hdfs.client.HdfsDataOutputStream.SyncFlag;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.Timeout;

/** What any transport must carry on a healthy cluster, which all tests of a class share. */
@Timeout(300)
@TestInstance(Lifecycle.PER_CLASS)
abstract class TransferTest {
  private TestCluster cluster;

  /** The transport's configuration; skips the class where there is no such transport. */
  abstract Configuration conf();

  /** Blocks that the client has written by the transport. */
  abstract long blocksWritten();

  /** Replicas that the client has opened by the transport. */
  abstract long reads();

  /** Nothing has travelled in another way than it should. */
  abstract void assertAllCarried();

  TestCluster cluster() {
    return cluster;
  }

  @BeforeAll
  void start() throws IOException {
    cluster = new TestCluster(conf(), 3);
  }

  @AfterAll
  void stop() {
    if (cluster != null) {
      cluster.close();
    }
  }

  @BeforeEach
  void reset() {
    cluster.reset();
  }

  @Test
  void smallAndOddFilesComeThrough() throws Exception {
    for (int length : new int[] {0, 1, 511, 512, 513, 64511, 64512, 64513, 200_000}) {
      byte[] data = TestCluster.data(length, length);
      cluster.write("/small" + length, data);
      cluster.check("/small" + length, data, 3);
    }
    assertAllCarried();
  }

  @Test
  void flushedBytesAreVisibleAtOnce() throws Exception {
    byte[] data = TestCluster.data(2, 20 << 20);
    Path path = new Path("/hflush");
    try (FSDataOutputStream out = cluster.fs().create(path)) {
      int at = 0;
      int step = 1_000_003;
      int round = 0;
      while (at < data.length) {
        int part = Math.min(step, data.length - at);
        out.write(data, at, part);
        at += part;
        if (round++ % 2 == 0) {
          out.hflush();
        } else {
          ((HdfsDataOutputStream) out).hsync(EnumSet.of(SyncFlag.UPDATE_LENGTH));
        }
        try (FileSystem other =
                FileSystem.newInstance(cluster.fs().getUri(), cluster.fs().getConf());
            FSDataInputStream in = other.open(path)) {
          byte[] seen = new byte[at];
          in.readFully(seen);
          assertArrayEquals(Arrays.copyOf(data, at), seen);
        }
      }
    }
    cluster.check("/hflush", data, 3);
    assertTrue(blocksWritten() >= 3);
  }

  @Test
  void filesAreAppendedTo() throws Exception {
    byte[] data = TestCluster.data(3, 12 << 20);
    Path path = new Path("/append");
    int at = 0;
    int round = 0;
    while (at < data.length) {
      int part =
          Math.min(data.length - at, new int[] {64512 * 3, 1000, 777_777, 3 << 20}[round % 4]);
      try (FSDataOutputStream out = round == 0 ? cluster.fs().create(path) : cluster.append(path)) {
        out.write(data, at, part);
      }
      at += part;
      round++;
      assertArrayEquals(Arrays.copyOf(data, at), cluster.read("/append"));
    }
    cluster.check("/append", data, 3);
    assertAllCarried();
  }

  @Test
  void eightWritersAtOnce() throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(8);
    try {
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
    } finally {
      pool.shutdownNow();
    }
    for (int i = 0; i < 8; i++) {
      cluster.check("/many" + i, TestCluster.data(i, 10 << 20), 3);
    }
    assertEquals(16, blocksWritten());
    assertAllCarried();
    assertEquals(0, cluster.allFallbacks());
  }

  @Test
  void readsOfEveryKind() throws Exception {
    byte[] data = TestCluster.data(5, 20 << 20);
    cluster.write("/kinds", data);
    cluster.reset();
    Path path = new Path("/kinds");
    Random random = new Random(6);
    try (FSDataInputStream in = cluster.fs().open(path)) {
      for (int i = 0; i < 50; i++) {
        int at = random.nextInt(data.length);
        byte[] part = new byte[Math.min(data.length - at, random.nextInt(300_000))];
        if (i % 2 == 0) {
          in.readFully(at, part);
        } else {
          in.seek(at);
          in.readFully(part);
        }
        assertArrayEquals(Arrays.copyOfRange(data, at, at + part.length), part);
      }
      in.seek(TestCluster.BLOCK_BYTES - 1000);
      ByteBuffer direct = ByteBuffer.allocateDirect(5000);
      while (direct.hasRemaining()) {
        assertTrue(in.read(direct) > 0);
      }
      byte[] got = new byte[5000];
      direct.flip().get(got);
      int at = TestCluster.BLOCK_BYTES - 1000;
      assertArrayEquals(Arrays.copyOfRange(data, at, at + 5000), got);
    }
    assertTrue(reads() > 10);
    assertEquals(0, cluster.allFallbacks());
    Configuration hedged = new Configuration(cluster.fs().getConf());
    hedged.setInt("dfs.client.hedged.read.threadpool.size", 4);
    hedged.setLong("dfs.client.hedged.read.threshold.millis", 1);
    try (FileSystem fs = FileSystem.newInstance(cluster.fs().getUri(), hedged);
        FSDataInputStream in = fs.open(path)) {
      byte[] part = new byte[1 << 20];
      in.readFully(5 << 20, part);
      assertArrayEquals(Arrays.copyOfRange(data, 5 << 20, 6 << 20), part);
    }
  }

  @Test
  void otherPacketAndChunkSizesComeThrough() throws Exception {
    int[][] sizes = {{65536, 4096}, {16384, 512}, {262144, 512}, {65536, 131072}};
    for (int[] size : sizes) {
      Configuration conf = new Configuration(cluster.fs().getConf());
      conf.setInt("dfs.client-write-packet-size", size[0]);
      conf.setInt("dfs.bytes-per-checksum", size[1]);
      byte[] data = TestCluster.data(size[0] + size[1], 3_000_001);
      String name = "/sizes-" + size[0] + "-" + size[1];
      try (FileSystem fs = FileSystem.newInstance(cluster.fs().getUri(), conf);
          FSDataOutputStream out = fs.create(new Path(name))) {
        out.write(data);
      }
      cluster.check(name, data, 3);
    }
  }
}

package io.trunkline.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.junit.jupiter.api.Test;

/** Writes and reads by name on a healthy cluster. */
class NamedTransferTest extends TransferTest {
  @Override
  Configuration conf() {
    return TestCluster.conf();
  }

  @Override
  long blocksWritten() {
    return cluster().count(Counter.NAMED_WRITES);
  }

  @Override
  long reads() {
    return cluster().count(Counter.NAMED_READS);
  }

  @Override
  void assertAllCarried() {
    assertEquals(0, cluster().count(Counter.BYTES_INLINE));
  }

  @Test
  void aFileIsWrittenAndReadByName() throws Exception {
    byte[] data = TestCluster.data(1, 64 << 20);
    cluster().write("/put", data);
    assertEquals(8, cluster().count(Counter.NAMED_WRITES));
    assertEquals(24, cluster().count(Counter.NAMED_RECEIVES));
    assertEquals(16, cluster().count(Counter.NAMED_RELAYS));
    assertTrue(cluster().count(Counter.BYTES_PUBLISHED) >= data.length);
    assertEquals(
        3 * cluster().count(Counter.BYTES_PUBLISHED), cluster().count(Counter.BYTES_PULLED));
    assertEquals(0, cluster().count(Counter.BYTES_INLINE));
    assertEquals(0, cluster().allFallbacks());
    cluster().check("/put", data, 3);
    assertEquals(data.length, cluster().count(Counter.BYTES_READ));
    assertEquals(8, cluster().count(Counter.NAMED_READS));
    assertEquals(0, cluster().allFallbacks());
  }

  /** Nobody would share what is published: neither is anything by name, nor does it fall back. */
  private void assertWrittenByTcp(int connections) {
    assertEquals(connections, cluster().count(Counter.PLAIN_WRITES));
    assertEquals(0, cluster().count(Counter.NAMED_WRITES));
    assertEquals(0, cluster().count(Counter.NAMED_RECEIVES));
    assertEquals(0, cluster().count(Counter.SEGMENTS_PUBLISHED));
    assertEquals(0, cluster().count(Counter.BYTES_INLINE));
    assertEquals(0, cluster().allFallbacks());
  }

  @Test
  void aFileOfOneReplicaIsWrittenByTcp() throws Exception {
    byte[] data = TestCluster.data(6, 10 << 20);
    Path path = new Path("/one");
    try (FSDataOutputStream out =
        cluster().fs().create(path, true, 4096, (short) 1, TestCluster.BLOCK_BYTES)) {
      out.write(data);
    }
    assertWrittenByTcp(2);
    cluster().check("/one", data, 1);
  }

  @Test
  void anErasureCodedFileGoesByTcp() throws Exception {
    String policy = "XOR-2-1-1024k";
    Path directory = new Path("/coded");
    cluster().fs().mkdirs(directory);
    cluster().fs().enableErasureCodingPolicy(policy);
    cluster().fs().setErasureCodingPolicy(directory, policy);
    byte[] data = TestCluster.data(7, (5 << 20) + 321);
    cluster().write("/coded/file", data);
    assertWrittenByTcp(3);
    long before = reads();
    assertArrayEquals(data, cluster().read("/coded/file"));
    assertEquals(before, reads());
  }

  @Test
  void aFileUnderConstructionIsReadByStockMeans() throws Exception {
    byte[] data = TestCluster.data(4, 10 << 20);
    Path path = new Path("/building");
    try (FSDataOutputStream out = cluster().fs().create(path)) {
      out.write(data);
      out.hflush();
      try (FSDataInputStream in = cluster().fs().open(path)) {
        byte[] seen = new byte[data.length];
        in.readFully(seen);
        assertArrayEquals(data, seen);
      }
      assertTrue(cluster().count(Fallback.NO_METADATA) > 0);
      assertEquals(TestCluster.BLOCK_BYTES, cluster().count(Counter.BYTES_READ));
    }
  }
}

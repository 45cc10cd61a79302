import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.zip.CRC32;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.ColumnFamilyDescriptorBuilder;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.Put;
import org.apache.hadoop.hbase.client.Result;
import org.apache.hadoop.hbase.client.ResultScanner;
import org.apache.hadoop.hbase.client.Scan;
import org.apache.hadoop.hbase.client.Table;
import org.apache.hadoop.hbase.client.TableDescriptorBuilder;
import org.apache.hadoop.hbase.util.Bytes;

/**
 * YCSB's workload A with 100% updates: threads that each put 1 KB values to uniformly chosen rows, one at a time, and
 * wait for each. Every Put is in the region server's log on HDFS before it returns.
 *
 * <p>Arguments: THREADS, WARM_SECONDS, SECONDS, RECORDS. Prints one line of JSON: Puts counted, seconds, exact
 * percentiles of their latencies in microseconds, rows read back. After the Puts the table is flushed to HDFS and every
 * row read and verified by the checksum in its value; a wrong one ends this with an exception.
 */
public final class PutLoad {
  private static final TableName TABLE = TableName.valueOf("usertable");
  private static final byte[] FAMILY = Bytes.toBytes("f");
  private static final byte[] FIELD = Bytes.toBytes("field0");
  private static final int VALUE_BYTES = 1024;

  private PutLoad() {}

  public static void main(String[] arguments) throws Exception {
    int threads = Integer.parseInt(arguments[0]);
    long warmNanos = Long.parseLong(arguments[1]) * 1_000_000_000L;
    long nanos = Long.parseLong(arguments[2]) * 1_000_000_000L;
    int records = Integer.parseInt(arguments[3]);
    try (Connection connection = ConnectionFactory.createConnection(HBaseConfiguration.create());
        Admin admin = connection.getAdmin()) {
      if (!admin.tableExists(TABLE)) {
        admin.createTable(
            TableDescriptorBuilder.newBuilder(TABLE)
                .setColumnFamily(ColumnFamilyDescriptorBuilder.of(FAMILY))
                .build());
      }
      long[] latencies = load(connection, threads, warmNanos, nanos, records);
      admin.flush(TABLE);
      int rows = verify(connection);
      Arrays.sort(latencies);
      System.out.printf(
          "{\"puts\": %d, \"seconds\": %.3f, \"mean_us\": %.1f, \"p50_us\": %.1f, \"p95_us\": %.1f, \"p99_us\": %.1f,"
              + " \"max_us\": %.1f, \"rows_verified\": %d}%n",
          latencies.length,
          nanos / 1e9,
          Arrays.stream(latencies).average().orElseThrow() / 1e3,
          percentile(latencies, 50),
          percentile(latencies, 95),
          percentile(latencies, 99),
          percentile(latencies, 100),
          rows);
    }
  }

  /** Puts from all threads; returns the latencies, in nanoseconds, of those that began after the warm-up. */
  private static long[] load(Connection connection, int threads, long warmNanos, long nanos, int records)
      throws Exception {
    ExecutorService pool = Executors.newFixedThreadPool(threads);
    try {
      CountDownLatch ready = new CountDownLatch(threads);
      @SuppressWarnings("unchecked")
      Future<long[]>[] results = new Future[threads];
      for (int number = 0; number < threads; number++) {
        results[number] =
            pool.submit(
                () -> {
                  ready.countDown();
                  ready.await();
                  return puts(connection, warmNanos, nanos, records);
                });
      }
      long[] all = new long[0];
      for (Future<long[]> result : results) {
        long[] some = result.get();
        int before = all.length;
        all = Arrays.copyOf(all, before + some.length);
        System.arraycopy(some, 0, all, before, some.length);
      }
      return all;
    } finally {
      pool.shutdownNow();
    }
  }

  private static long[] puts(Connection connection, long warmNanos, long nanos, int records) throws Exception {
    long[] latencies = new long[1 << 17];
    int counted = 0;
    byte[] value = new byte[VALUE_BYTES];
    ThreadLocalRandom random = ThreadLocalRandom.current();
    try (Table table = connection.getTable(TABLE)) {
      long from = System.nanoTime() + warmNanos;
      while (true) {
        random.nextBytes(value);
        seal(value);
        Put put = new Put(Bytes.toBytes("user" + random.nextInt(records))).addColumn(FAMILY, FIELD, value.clone());
        long began = System.nanoTime();
        if (began >= from + nanos) {
          return Arrays.copyOf(latencies, counted);
        }
        table.put(put);
        if (began >= from) {
          if (counted == latencies.length) {
            latencies = Arrays.copyOf(latencies, 2 * counted);
          }
          latencies[counted++] = System.nanoTime() - began;
        }
      }
    }
  }

  private static int verify(Connection connection) throws Exception {
    int rows = 0;
    try (Table table = connection.getTable(TABLE);
        ResultScanner scanner = table.getScanner(new Scan().addColumn(FAMILY, FIELD).setCaching(500))) {
      for (Result row : scanner) {
        byte[] value = row.getValue(FAMILY, FIELD);
        if (value.length != VALUE_BYTES || ByteBuffer.wrap(value).getInt() != checksum(value)) {
          throw new IllegalStateException("row " + Bytes.toString(row.getRow()) + " is not as it was put");
        }
        rows++;
      }
    }
    return rows;
  }

  /** Writes the checksum of the rest into the first four bytes. */
  private static void seal(byte[] value) {
    ByteBuffer.wrap(value).putInt(checksum(value));
  }

  private static int checksum(byte[] value) {
    CRC32 crc = new CRC32();
    crc.update(value, Integer.BYTES, value.length - Integer.BYTES);
    return (int) crc.getValue();
  }

  private static double percentile(long[] sorted, int percent) {
    return sorted[Math.max(0, (int) Math.ceil(sorted.length * percent / 100.0) - 1)] / 1e3;
  }
}

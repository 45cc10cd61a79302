import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hdfs.client.HdfsClientConfigKeys;

/**
 * A client that writes a local file to HDFS as often as it is told, each time into one block, and says how long the
 * parts took.
 *
 * <p>Arguments: FILE, BYTES of a block. Prints "ready", then does what lines of its standard input say: after "write
 * TARGET REPLICATION BYTES", so many of the file's first ones, it prints "wrote SETUP DATA TOTAL" in microseconds: from
 * the file's creation until the first packet is acknowledged by all replicas, from there until the last one is, and from
 * the creation until the file is closed; "warm TARGET REPLICATION BYTES" writes in packets of 4 KB, as the JVMs of
 * DataNodes compile what they have done for many packets, however small, and prints as much; "remove TARGET" deletes the
 * file and prints "removed". Ends when its standard input does.
 */
public final class BlockWriter {
  private static final int FIRST = 64 << 10;
  private static final int SMALL = 4 << 10;

  private BlockWriter() {}

  public static void main(String[] arguments) throws Exception {
    byte[] data = Files.readAllBytes(java.nio.file.Path.of(arguments[0]));
    long block = Long.parseLong(arguments[1]);
    Configuration small = new Configuration();
    small.setInt(HdfsClientConfigKeys.DFS_CLIENT_WRITE_PACKET_SIZE_KEY, SMALL);
    try (FileSystem fileSystem = FileSystem.newInstance(new Configuration());
        FileSystem warming = FileSystem.newInstance(small);
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
      System.out.println("ready");
      for (String order = orders.readLine(); order != null; order = orders.readLine()) {
        String[] words = order.split(" ");
        if (!words[0].equals("remove")) {
          int bytes = Math.min(Integer.parseInt(words[3]), data.length);
          FileSystem by = words[0].equals("warm") ? warming : fileSystem;
          write(by, new Path(words[1]), Short.parseShort(words[2]), block, data, bytes);
        } else {
          fileSystem.delete(new Path(words[1]), false);
          System.out.println("removed");
        }
      }
    }
  }

  private static void write(
      FileSystem fileSystem, Path target, short replication, long block, byte[] data, int bytes) throws Exception {
    int first = Math.min(FIRST, bytes);
    long began = System.nanoTime();
    long flows;
    long acknowledged;
    try (FSDataOutputStream out = fileSystem.create(target, false, FIRST, replication, block)) {
      out.write(data, 0, first);
      out.hflush();
      flows = System.nanoTime();
      out.write(data, first, bytes - first);
      out.hflush();
      acknowledged = System.nanoTime();
    }
    long ended = System.nanoTime();
    System.out.printf(
        "wrote %d %d %d%n", (flows - began) / 1000, (acknowledged - flows) / 1000, (ended - began) / 1000);
  }
}

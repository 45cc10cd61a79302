import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * A client that writes a local file to HDFS as often as it is told, each time into one block, and says how long the
 * parts took.
 *
 * <p>Arguments: FILE, BYTES of a block. Prints "ready", then does what lines of its standard input say: after "write
 * TARGET REPLICATION BYTES", so many of the file's first ones, it prints "wrote SETUP DATA TOTAL" in microseconds: from
 * the file's creation until the first packet is acknowledged by all replicas, from there until the last one is, and from
 * the creation until the file is closed; "remove TARGET" deletes it and prints "removed". Ends when its standard input
 * does.
 */
public final class BlockWriter {
  private static final int FIRST = 64 << 10;

  private BlockWriter() {}

  public static void main(String[] arguments) throws Exception {
    byte[] data = Files.readAllBytes(java.nio.file.Path.of(arguments[0]));
    long block = Long.parseLong(arguments[1]);
    try (FileSystem fileSystem = FileSystem.newInstance(new Configuration());
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
      System.out.println("ready");
      for (String order = orders.readLine(); order != null; order = orders.readLine()) {
        String[] words = order.split(" ");
        if (words[0].equals("write")) {
          int bytes = Math.min(Integer.parseInt(words[3]), data.length);
          write(fileSystem, new Path(words[1]), Short.parseShort(words[2]), block, data, bytes);
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

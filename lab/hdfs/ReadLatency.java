import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Random;
import java.util.zip.CRC32;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * A client that reads a file of HDFS all the time, a piece at a random place after the other, and says how long each
 * read took. Between two it rests, as many readers do.
 *
 * <p>Arguments: FILE, BYTES of a read, PAUSE in milliseconds, CRC of each piece of BYTES of the file, with commas
 * between. Prints "ready" after a read of every piece, then "micros AT LATENCY" for each read, AT being milliseconds of
 * Unix time, and
 * ends when its standard input does. A piece that is not what was written ends it with an exception.
 */
public final class ReadLatency {
  private ReadLatency() {}

  public static void main(String[] arguments) throws Exception {
    Path file = new Path(arguments[0]);
    int size = Integer.parseInt(arguments[1]);
    long pauseMs = Long.parseLong(arguments[2]);
    String[] wanted = arguments[3].split(",");
    byte[] buffer = new byte[size];
    Random random = new Random(1);
    Thread ends = new Thread(ReadLatency::untilInputEnds, "input");
    ends.setDaemon(true);
    try (FileSystem fileSystem = FileSystem.newInstance(new Configuration());
        FSDataInputStream in = fileSystem.open(file)) {
      for (int piece = 0; piece < wanted.length; piece++) {
        read(in, buffer, piece, wanted[piece]);
      }
      System.out.println("ready");
      ends.start();
      while (ends.isAlive()) {
        int piece = random.nextInt(wanted.length);
        long began = System.nanoTime();
        read(in, buffer, piece, wanted[piece]);
        long micros = (System.nanoTime() - began) / 1000;
        System.out.println("micros " + System.currentTimeMillis() + " " + micros);
        Thread.sleep(pauseMs);
      }
    }
  }

  private static void read(FSDataInputStream in, byte[] buffer, int piece, String wanted) throws Exception {
    in.readFully((long) piece * buffer.length, buffer);
    CRC32 crc = new CRC32();
    crc.update(buffer);
    if (!Long.toString(crc.getValue()).equals(wanted)) {
      throw new IllegalStateException("piece " + piece + " is not what was written");
    }
  }

  private static void untilInputEnds() {
    try (BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
      while (input.readLine() != null) {}
    } catch (java.io.IOException ended) {
      // as good as an end
    }
  }
}

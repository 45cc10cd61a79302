import java.util.Arrays;
import java.util.Random;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.util.GenericOptionsParser;

/**
 * A client whose operations are so small that what counts is how often they wait for somebody.
 *
 * <p>Arguments: Hadoop's generic options, DIRECTORY, BYTES of an operation, COUNT of each kind. Prints "micros KIND P50
 * P99" for each kind:
 *
 * <ul>
 *   <li>hflush: BYTES are written to an open file and flushed to all replicas.
 *   <li>file: a file of BYTES is created, written and closed.
 *   <li>pread: BYTES at a random place of a file are read, as HBase does.
 * </ul>
 *
 * As many operations as are counted go before, in which the JVMs compile. What is read is compared.
 */
public final class SmallOperations {
  private static final int READ_FILE_BYTES = 16 << 20;

  private SmallOperations() {}

  private interface Operation {
    void run(int number) throws Exception;
  }

  public static void main(String[] given) throws Exception {
    Configuration conf = new Configuration();
    String[] arguments = new GenericOptionsParser(conf, given).getRemainingArgs();
    Path directory = new Path(arguments[0]);
    byte[] piece = new byte[Integer.parseInt(arguments[1])];
    int count = Integer.parseInt(arguments[2]);
    Random random = new Random(1);
    random.nextBytes(piece);
    try (FileSystem fs = FileSystem.newInstance(conf)) {
      try (FSDataOutputStream log = fs.create(new Path(directory, "log"))) {
        measure("hflush", count, number -> {
          log.write(piece);
          log.hflush();
        });
      }
      measure("file", count, number -> {
        try (FSDataOutputStream out = fs.create(new Path(directory, "file-" + number))) {
          out.write(piece);
        }
      });
      byte[] content = new byte[READ_FILE_BYTES];
      random.nextBytes(content);
      Path file = new Path(directory, "read");
      try (FSDataOutputStream out = fs.create(file)) {
        out.write(content);
      }
      byte[] read = new byte[piece.length];
      try (FSDataInputStream in = fs.open(file)) {
        measure("pread", count, number -> {
          int at = random.nextInt(content.length - read.length);
          in.readFully(at, read);
          if (!Arrays.equals(read, 0, read.length, content, at, at + read.length)) {
            throw new IllegalStateException("what was read at " + at + " is not what was written");
          }
        });
      }
    }
  }

  private static void measure(String kind, int count, Operation operation) throws Exception {
    long[] micros = new long[count];
    for (int number = -count; number < count; number++) {
      long began = System.nanoTime();
      operation.run(number);
      if (number >= 0) {
        micros[number] = (System.nanoTime() - began) / 1000;
      }
    }
    Arrays.sort(micros);
    System.out.println("micros " + kind + " " + micros[count / 2] + " " + micros[count * 99 / 100]);
  }
}

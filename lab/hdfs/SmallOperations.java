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
 * <p>Arguments: Hadoop's generic options, DIRECTORY, BYTES of an operation, and KIND=COUNT for each kind wanted. Prints
 * "micros KIND P50 P99" for each:
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
    Random random = new Random(1);
    random.nextBytes(piece);
    try (FileSystem fs = FileSystem.newInstance(conf)) {
      for (int i = 2; i < arguments.length; i++) {
        String[] wanted = arguments[i].split("=");
        int count = Integer.parseInt(wanted[1]);
        switch (wanted[0]) {
          case "hflush" -> hflush(fs, new Path(directory, "log"), piece, count);
          case "file" -> measure("file", count, number -> {
            try (FSDataOutputStream out = fs.create(new Path(directory, "file-" + number))) {
              out.write(piece);
            }
          });
          case "pread" -> pread(fs, new Path(directory, "read"), piece.length, random, count);
          default -> throw new IllegalArgumentException("no kind of operation: " + wanted[0]);
        }
      }
    }
  }

  private static void hflush(FileSystem fs, Path path, byte[] piece, int count) throws Exception {
    try (FSDataOutputStream log = fs.create(path)) {
      measure("hflush", count, number -> {
        log.write(piece);
        log.hflush();
      });
    }
  }

  private static void pread(FileSystem fs, Path path, int bytes, Random random, int count) throws Exception {
    byte[] content = new byte[READ_FILE_BYTES];
    random.nextBytes(content);
    try (FSDataOutputStream out = fs.create(path)) {
      out.write(content);
    }
    byte[] read = new byte[bytes];
    try (FSDataInputStream in = fs.open(path)) {
      measure("pread", count, number -> {
        int at = random.nextInt(content.length - read.length);
        in.readFully(at, read);
        if (!Arrays.equals(read, 0, read.length, content, at, at + read.length)) {
          throw new IllegalStateException("what was read at " + at + " is not what was written");
        }
      });
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

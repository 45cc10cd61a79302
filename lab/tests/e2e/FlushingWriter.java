import java.io.DataInputStream;
import java.io.EOFException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Writes the file of its one argument in pieces that come on standard input, each after its length
 * in 4 bytes. Every piece is hflushed, and then the file's length is printed as a line; the end of
 * the input closes the file.
 */
public final class FlushingWriter {
  private FlushingWriter() {}

  public static void main(String[] arguments) throws Exception {
    DataInputStream in = new DataInputStream(System.in);
    try (FileSystem fs = FileSystem.get(new Configuration());
        FSDataOutputStream out = fs.create(new Path(arguments[0]))) {
      while (true) {
        int length;
        try {
          length = in.readInt();
        } catch (EOFException e) {
          return;
        }
        out.write(in.readNBytes(length));
        out.hflush();
        System.out.println(out.getPos());
      }
    }
  }
}

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.DistributedFileSystem;
import org.apache.hadoop.io.IOUtils;

/**
 * A client that puts local files one after the other, each on the DataNodes that it is told: so two runs have the same
 * pipelines, where HDFS would draw them anew.
 *
 * <p>Arguments: DIRECTORY of HDFS, REPLICATION, then for each file FILE and its DataNodes' addresses for data transfer
 * with commas between. Prints "ready", waits for a line on its standard input, puts them all and prints "put MICROS".
 */
public final class PlacedPut {
  private PlacedPut() {}

  public static void main(String[] arguments) throws Exception {
    Configuration conf = new Configuration();
    short replication = Short.parseShort(arguments[1]);
    int buffer = conf.getInt("io.file.buffer.size", 4096);
    try (DistributedFileSystem fs = (DistributedFileSystem) DistributedFileSystem.newInstance(conf);
        BufferedReader orders = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
      long block = fs.getDefaultBlockSize(new Path("/"));
      System.out.println("ready");
      orders.readLine();
      long began = System.nanoTime();
      for (int i = 2; i < arguments.length; i += 2) {
        java.nio.file.Path file = java.nio.file.Path.of(arguments[i]);
        Path target = new Path(arguments[0], file.getFileName().toString());
        InetSocketAddress[] nodes = addresses(arguments[i + 1]);
        try (InputStream in = Files.newInputStream(file);
            FSDataOutputStream out =
                fs.create(target, FsPermission.getFileDefault(), false, buffer, replication, block, null, nodes)) {
          IOUtils.copyBytes(in, out, buffer);
        }
      }
      System.out.println("put " + (System.nanoTime() - began) / 1000);
    }
  }

  /** Addresses whose host name is what was written: nobody is asked for one. */
  private static InetSocketAddress[] addresses(String text) throws IOException {
    List<InetSocketAddress> found = new ArrayList<>();
    for (String node : text.split(",")) {
      int colon = node.lastIndexOf(':');
      String host = node.substring(0, colon);
      InetAddress address = InetAddress.getByAddress(host, InetAddress.getByName(host).getAddress());
      found.add(new InetSocketAddress(address, Integer.parseInt(node.substring(colon + 1))));
    }
    return found.toArray(new InetSocketAddress[0]);
  }
}

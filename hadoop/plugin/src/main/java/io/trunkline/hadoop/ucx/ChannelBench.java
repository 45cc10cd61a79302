package io.trunkline.hadoop.ucx;

import com.sun.management.OperatingSystemMXBean;
import io.trunkline.hadoop.conf.UcxSettings;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

/**
 * Throughput of our channel and of NIO's over the loopback, between two processes of one host, by
 * turns: {@code ChannelBench run RUNS BYTES}. A JSON line for each message size has GB/s and
 * CPU-seconds per GB of both processes together, medians.
 */
public final class ChannelBench {
  private static final int[] SIZES = {64 << 10, 512 << 10};
  private static final String TLS = "posix,cma,tcp";
  private static final OperatingSystemMXBean SYSTEM =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  private ChannelBench() {}

  private record Rate(double gbPerS, double cpuPerGb) {}

  @FunctionalInterface
  private interface Acceptor {
    SocketChannel accept() throws IOException;
  }

  /** Runs. */
  public static void main(String[] arguments) throws Exception {
    if (arguments.length == 3 && arguments[0].equals("run")) {
      run(Integer.parseInt(arguments[1]), Long.parseLong(arguments[2]));
    } else if (arguments.length == 2 && arguments[0].equals("serve")) {
      serve(arguments[1].equals("ucx"));
    } else {
      System.err.println("usage: ChannelBench run RUNS BYTES");
      System.exit(2);
    }
  }

  private static UcxNode node() throws IOException {
    return UcxNode.open(UcxSettings.builder().tls(TLS).build());
  }

  private static void run(int runs, long bytes) throws Exception {
    Process nioServer = server("nio");
    Process ucxServer = server("ucx");
    try (UcxNode node = node()) {
      InetSocketAddress nioAt = listening(nioServer);
      InetSocketAddress ucxAt = listening(ucxServer);
      for (int size : SIZES) {
        Rate[] nio = new Rate[runs];
        Rate[] ucx = new Rate[runs];
        for (int i = -1; i < runs; i++) { // the first round warms up
          Rate ours;
          Rate theirs;
          try (SocketChannel channel = node.connect(ucxAt, 0)) {
            ours = send(channel, size, bytes);
          }
          try (SocketChannel channel = SocketChannel.open(nioAt)) {
            channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
            theirs = send(channel, size, bytes);
          }
          if (i >= 0) {
            nio[i] = theirs;
            ucx[i] = ours;
          }
        }
        Rate ours = median(ucx);
        Rate theirs = median(nio);
        System.out.printf(
            "{\"size\": \"%dk\", \"ucx_gb_s\": %.3f, \"nio_gb_s\": %.3f,"
                + " \"ucx_cpu_s_per_gb\": %.4f, \"nio_cpu_s_per_gb\": %.4f}%n",
            size >> 10, ours.gbPerS(), theirs.gbPerS(), ours.cpuPerGb(), theirs.cpuPerGb());
      }
    } finally {
      nioServer.destroyForcibly();
      ucxServer.destroyForcibly();
    }
  }

  private static Rate median(Rate[] of) {
    double[] rates = Arrays.stream(of).mapToDouble(Rate::gbPerS).sorted().toArray();
    double[] costs = Arrays.stream(of).mapToDouble(Rate::cpuPerGb).sorted().toArray();
    return new Rate(rates[rates.length / 2], costs[costs.length / 2]);
  }

  private static Process server(String kind) throws IOException {
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    String classPath = System.getProperty("java.class.path");
    return new ProcessBuilder(
            List.of(java, "-cp", classPath, ChannelBench.class.getName(), "serve", kind))
        .redirectError(ProcessBuilder.Redirect.INHERIT)
        .start();
  }

  private static InetSocketAddress listening(Process server) throws IOException {
    BufferedReader said =
        new BufferedReader(new InputStreamReader(server.getInputStream(), StandardCharsets.UTF_8));
    for (String line = said.readLine(); line != null; line = said.readLine()) {
      if (line.startsWith("listening ")) {
        return new InetSocketAddress(
            InetAddress.getLoopbackAddress(), Integer.parseInt(line.substring(10)));
      }
    }
    throw new IOException("server of the bench has ended");
  }

  private static void serve(boolean ucx) throws IOException {
    InetSocketAddress any = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
    if (ucx) {
      UcxListener listener = node().listen(any, 16);
      System.out.println("listening " + listener.address().getPort());
      serve(() -> listener.accept(0));
    } else {
      ServerSocketChannel listener = ServerSocketChannel.open().bind(any);
      System.out.println("listening " + listener.socket().getLocalPort());
      serve(listener::accept);
    }
  }

  private static void serve(Acceptor from) throws IOException {
    for (; ; ) {
      try (SocketChannel channel = from.accept()) {
        ByteBuffer head = ByteBuffer.allocateDirect(16);
        read(channel, head);
        long left = head.getLong(8);
        ByteBuffer block = ByteBuffer.allocateDirect((int) head.getLong(0));
        long cpu = SYSTEM.getProcessCpuTime();
        for (; left > 0; left -= block.limit()) {
          read(channel, block.clear().limit((int) Math.min(block.capacity(), left)));
        }
        write(channel, head.clear().putLong(0, SYSTEM.getProcessCpuTime() - cpu).limit(8));
      }
    }
  }

  /** Sends messages of a size, and waits for the receiver's word that it has them all. */
  private static Rate send(SocketChannel channel, int size, long bytes) throws IOException {
    ByteBuffer head = ByteBuffer.allocateDirect(16).putLong(0, size).putLong(8, bytes);
    ByteBuffer block = ByteBuffer.allocateDirect(size);
    write(channel, head);
    long cpu = SYSTEM.getProcessCpuTime();
    long began = System.nanoTime();
    for (long left = bytes; left > 0; left -= block.limit()) {
      write(channel, block.clear().limit((int) Math.min(size, left)));
    }
    read(channel, head.clear().limit(8));
    double seconds = (System.nanoTime() - began) / 1e9;
    double cpuSeconds = (SYSTEM.getProcessCpuTime() - cpu + head.getLong(0)) / 1e9;
    return new Rate(bytes / 1e9 / seconds, cpuSeconds / (bytes / 1e9));
  }

  private static void read(SocketChannel channel, ByteBuffer to) throws IOException {
    while (to.hasRemaining()) {
      if (channel.read(to) < 0) {
        throw new IOException("stream of the bench ended early");
      }
    }
  }

  private static void write(SocketChannel channel, ByteBuffer from) throws IOException {
    while (from.hasRemaining()) {
      channel.write(from);
    }
  }
}

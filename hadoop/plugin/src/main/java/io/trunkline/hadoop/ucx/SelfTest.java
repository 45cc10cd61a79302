package io.trunkline.hadoop.ucx;

import io.trunkline.hadoop.conf.Setting;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/**
 * The transport's own test, by itself: two JVMs, streams both ways, every byte checked, a peer
 * killed in mid-stream. Runs wherever UCX does, with whatever UCX_TLS and UCX_NET_DEVICES say.
 *
 * <pre>
 *   SelfTest probe                                 is UCX here? exit 0 or 3
 *   SelfTest server --listen ADDRESS:PORT          answers clients until it is ended
 *   SelfTest client --connect ADDRESS:PORT         streams both ways
 *   SelfTest peer-kill --listen ADDRESS:PORT       kills a client of its own in mid-stream
 *   SelfTest all --address ADDRESS                 all of it
 *   options: --bytes N --streams N --wake-check-ms N --patience N (times every time-out)
 * </pre>
 */
public final class SelfTest {
  private static final int SECONDS = 20;
  private static final int BLOCK = 64 << 10;
  private static final int SEED_BYTES = 16;
  private static final int EXIT_UNAVAILABLE = 3;

  private final SelfTestOptions options;
  private int checks;
  private int failures;

  private SelfTest(SelfTestOptions options) {
    this.options = options;
  }

  /** Runs; the first argument says what. */
  public static void main(String[] arguments) throws Exception {
    SelfTestOptions options;
    try {
      options = SelfTestOptions.parse(arguments);
    } catch (IllegalArgumentException e) {
      System.err.println(e.getMessage());
      System.exit(2);
      return;
    }
    UcxLibrary.Status status = UcxLibrary.probe(options.settings());
    if (options.mode().equals("probe") || !status.available()) {
      System.out.println(
          status.available()
              ? "available " + status.version() + " " + status.path()
              : "unavailable: " + status.reason());
      System.exit(status.available() ? 0 : EXIT_UNAVAILABLE);
    }
    System.exit(new SelfTest(options).run());
  }

  private int run() throws Exception {
    try (UcxNode node = UcxNode.open(options.settings())) {
      switch (options.mode()) {
        case "server" -> serve(node);
        case "client" -> check("streams", () -> streams(node, options.address()));
        case "flood" -> flood(node);
        case "peer-kill" -> check("peer-kill", () -> peerKill(node, options.address()));
        default -> all(node);
      }
    } catch (UcxUnavailableException e) {
      System.out.println("unavailable: " + e.getMessage());
      return EXIT_UNAVAILABLE;
    }
    if (failures == 0) {
      System.out.println("SELFTEST PASS " + checks + " checks");
    }
    return failures == 0 ? 0 : 1;
  }

  private void check(String name, Callable<String> what) {
    checks++;
    try {
      System.out.println("ok " + name + ": " + what.call());
    } catch (Exception e) {
      failures++;
      System.out.println("FAILED " + name + ": " + e);
      e.printStackTrace(System.out);
    }
  }

  private long limitMs() {
    return TimeUnit.SECONDS.toMillis((long) SECONDS * options.patience());
  }

  private void all(UcxNode node) throws Exception {
    InetSocketAddress any = new InetSocketAddress(options.address().getAddress(), 0);
    Process server = child("server", "--listen", text(any));
    try {
      BufferedReader said =
          new BufferedReader(
              new InputStreamReader(server.getInputStream(), StandardCharsets.UTF_8));
      String line = said.readLine();
      while (line != null && !line.startsWith("listening ")) {
        line = said.readLine();
      }
      if (line == null) {
        throw new IOException("server ended with status " + server.waitFor());
      }
      InetSocketAddress at = SelfTestOptions.address(line.substring("listening ".length()));
      check("streams both ways", () -> streams(node, at));
      check(
          "connections used again",
          () -> {
            streams(node, at);
            streams(node, at);
            long made = node.metrics().endpointsConnected();
            long most = options.settings().get(Setting.UCX_WORKERS);
            if (made > most) {
              throw new IOException(made + " connections for " + most + " workers");
            }
            return made + " connections for " + node.metrics().streamsOpened() + " streams";
          });
      check("server killed", () -> serverKilled(node, at, server));
      check("client killed", () -> peerKill(node, any));
      check("all given back", () -> givenBack(node));
    } finally {
      server.destroyForcibly();
    }
  }

  // ---- the two sides of a stream

  /** Writes bytes of a seed, and then reads as many back of another one. */
  private String streams(UcxNode node, InetSocketAddress to) throws Exception {
    ExecutorService threads = Executors.newFixedThreadPool(options.streams());
    try {
      List<Future<Void>> all = new ArrayList<>();
      for (int i = 0; i < options.streams(); i++) {
        int seed = i;
        all.add(threads.submit(() -> stream(node, to, seed)));
      }
      for (Future<Void> each : all) {
        each.get(limitMs() * 4, TimeUnit.MILLISECONDS);
      }
    } finally {
      threads.shutdownNow();
    }
    UcxMetrics metrics = node.metrics();
    return options.streams()
        + " streams of "
        + options.bytes()
        + " bytes each way; eager "
        + metrics.eagerSent()
        + ", rendezvous "
        + metrics.rendezvousSent()
        + ", connections "
        + metrics.endpointsConnected();
  }

  private Void stream(UcxNode node, InetSocketAddress to, long seed) throws IOException {
    try (UcxChannel channel = node.connect(to, Math.toIntExact(limitMs()))) {
      ByteBuffer head = ByteBuffer.allocate(SEED_BYTES).putLong(seed).putLong(options.bytes());
      channel.write(head.flip(), limitMs());
      send(channel, seed, options.bytes());
      receive(channel, ~seed, options.bytes());
      channel.shutdownOutput();
      if (channel.read(ByteBuffer.allocate(1), limitMs()) != -1) {
        throw new IOException("bytes beyond the end");
      }
    }
    return null;
  }

  private void serve(UcxNode node) throws IOException {
    UcxListener listener = node.listen(options.address(), 1024);
    System.out.println("listening " + text(listener.address()));
    for (; ; ) {
      UcxChannel channel = listener.accept(0);
      Thread thread = new Thread(() -> answer(channel), "selftest-answer");
      thread.setDaemon(true);
      thread.start();
    }
  }

  private void answer(UcxChannel channel) {
    try (channel) {
      ByteBuffer head = ByteBuffer.allocate(SEED_BYTES);
      while (head.hasRemaining()) {
        if (channel.read(head, limitMs()) < 0) {
          return;
        }
      }
      receive(channel, head.getLong(0), head.getLong(8));
      send(channel, ~head.getLong(0), head.getLong(8));
      channel.shutdownOutput();
      channel.read(ByteBuffer.allocate(1), limitMs());
    } catch (IOException e) {
      System.out.println("stream ended: " + e.getMessage());
    }
  }

  private void send(UcxChannel channel, long seed, long bytes) throws IOException {
    SplittableRandom random = new SplittableRandom(seed);
    ByteBuffer block = ByteBuffer.allocateDirect(BLOCK);
    for (long left = bytes; left > 0; left -= block.limit()) {
      fill(block, random);
      block.limit((int) Math.min(BLOCK, left));
      channel.write(block, limitMs());
    }
  }

  private void receive(UcxChannel channel, long seed, long bytes) throws IOException {
    SplittableRandom random = new SplittableRandom(seed);
    ByteBuffer block = ByteBuffer.allocateDirect(BLOCK);
    ByteBuffer expected = ByteBuffer.allocateDirect(BLOCK);
    for (long left = bytes; left > 0; left -= block.limit()) {
      block.clear().limit((int) Math.min(BLOCK, left));
      while (block.hasRemaining()) {
        if (channel.read(block, limitMs()) < 0) {
          throw new IOException("stream ended " + (left - block.position()) + " bytes early");
        }
      }
      fill(expected, random);
      expected.limit(block.limit());
      if (block.flip().mismatch(expected) >= 0) {
        throw new IOException("wrong byte " + (bytes - left + block.mismatch(expected)));
      }
    }
  }

  private static void fill(ByteBuffer block, SplittableRandom random) {
    block.clear();
    while (block.remaining() >= Long.BYTES) {
      block.putLong(random.nextLong());
    }
    block.flip();
  }

  // ---- deaths

  /**
   * Kills the server in mid-stream. What it reads is as it expects, so that nothing but its death
   * ends the stream: a reader that has found a wrong byte would close it.
   */
  private String serverKilled(UcxNode node, InetSocketAddress at, Process server) throws Exception {
    try (UcxChannel channel = node.connect(at, Math.toIntExact(limitMs()))) {
      channel.write(
          ByteBuffer.allocate(SEED_BYTES).putLong(1).putLong(Long.MAX_VALUE).flip(), limitMs());
      SplittableRandom random = new SplittableRandom(1);
      ByteBuffer block = ByteBuffer.allocateDirect(BLOCK);
      for (long sent = 0; sent <= options.bytes() / 4; sent += BLOCK) {
        fill(block, random);
        channel.write(block, limitMs());
      }
      server.destroyForcibly().waitFor();
      long killed = System.nanoTime();
      String writing =
          failure(
              channel,
              () -> {
                fill(block, random);
                return channel.write(block, limitMs());
              });
      String reading = failure(channel, () -> channel.read(block.clear(), limitMs()));
      long afterMs = (System.nanoTime() - killed) / 1_000_000;
      return "seen after " + afterMs + " ms: writing: " + writing + "; reading: " + reading;
    }
  }

  /** What a call says once the peer has died; an end as if the stream were whole is a fault. */
  private static String failure(UcxChannel channel, Callable<Integer> call) throws Exception {
    try {
      while (call.call() >= 0) {}
    } catch (java.net.SocketTimeoutException e) {
      throw e;
    } catch (IOException e) {
      if (channel.peerGone()) {
        return e.getMessage();
      }
      throw new IOException("a killed peer passed for one that closed: " + e.getMessage(), e);
    }
    throw new IOException("a killed peer's stream ended as if it were whole");
  }

  /** Starts a client process that writes without end, and kills it. */
  private String peerKill(UcxNode node, InetSocketAddress address) throws Exception {
    try (UcxListener listener = node.listen(address, 16)) {
      Process client = child("flood", "--connect", text(listener.address()));
      try (UcxChannel channel = listener.accept(Math.toIntExact(limitMs()))) {
        ByteBuffer block = ByteBuffer.allocateDirect(BLOCK);
        for (long read = 0; read <= options.bytes() / 4; ) {
          int count = channel.read(block.clear(), limitMs());
          if (count < 0) {
            throw new IOException("a client that writes without end has ended its stream");
          }
          read += count;
        }
        client.destroyForcibly().waitFor();
        return "after " + failure(channel, () -> channel.read(block.clear(), limitMs()));
      } finally {
        client.destroyForcibly();
      }
    }
  }

  private void flood(UcxNode node) throws IOException {
    try (UcxChannel channel = node.connect(options.address(), Math.toIntExact(limitMs()))) {
      ByteBuffer block = ByteBuffer.allocateDirect(BLOCK);
      for (; ; ) {
        channel.write(block.clear(), 0);
      }
    }
  }

  private String givenBack(UcxNode node) throws Exception {
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(limitMs());
    for (; ; ) {
      node.trimPool();
      UcxMetrics metrics = node.metrics();
      if (metrics.registeredBytes() == 0
          && metrics.streamsOpen() == 0
          && metrics.endpointsOpen() == 0) {
        return "0 streams, 0 connections, 0 registered bytes";
      }
      if (System.nanoTime() - deadline > 0) {
        throw new IOException("left: " + metrics);
      }
      Thread.sleep(20);
    }
  }

  private Process child(String mode, String key, String address) throws IOException {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(ManagementFactory.getRuntimeMXBean().getInputArguments());
    command.addAll(List.of("-cp", System.getProperty("java.class.path")));
    command.addAll(List.of(SelfTest.class.getName(), mode, key, address));
    command.addAll(options.forChildren());
    return new ProcessBuilder(command).redirectErrorStream(true).start();
  }

  private static String text(InetSocketAddress address) {
    return address.getAddress().getHostAddress() + ":" + address.getPort();
  }
}

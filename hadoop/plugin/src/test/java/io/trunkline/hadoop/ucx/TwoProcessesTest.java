package io.trunkline.hadoop.ucx;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.conf.Setting;
import io.trunkline.hadoop.conf.UcxSettings;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Streams between JVMs, over TCP and over shared memory; peers that die or stop. */
@Timeout(120)
class TwoProcessesTest {
  private static final long BOUND = 16 << 20;

  @BeforeEach
  void need() {
    UcxTests.needUcx();
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "posix,cma,tcp"})
  void selfTestPasses(String tls) throws Exception {
    Process all = UcxTests.selfTest(tls, "all", "--bytes", "4194304");
    String said = UcxTests.say(all, null);
    assertEquals(0, all.waitFor(), said);
    assertTrue(said.contains("SELFTEST PASS"), said);
  }

  private static UcxNode node(String tls) throws IOException {
    return UcxNode.open(UcxSettings.builder().tls(tls).build());
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "posix,cma,tcp"})
  void aStoppedPeerRunsIntoTheReadersTimeout(String tls) throws Exception {
    Process server = UcxTests.selfTest(tls, "server", "--listen", "127.0.0.1:0");
    try (UcxNode node = node(tls)) {
      InetSocketAddress at = SelfTestOptions.address(UcxTests.say(server, "listening "));
      try (UcxChannel channel = node.connect(at, 5000)) {
        signal(server, "STOP");
        UcxTests.eventually("all its threads stand still", () -> isStopped(server));
        channel.write(ByteBuffer.allocate(16).putLong(5).putLong(1).flip(), 5000);
        channel.write(ByteBuffer.allocate(1), 5000);
        ByteBuffer answer = ByteBuffer.allocate(1);
        assertThrows(SocketTimeoutException.class, () -> fill(channel));
        assertThrows(SocketTimeoutException.class, () -> channel.read(answer, 300));
        List<Service> told = new ArrayList<>();
        channel.onClose((service, why) -> told.add(service));
        channel.close();
        assertEquals(List.of(Service.SILENT), told);
        signal(server, "CONT");
      }
    } finally {
      server.destroyForcibly();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"tcp", "posix,cma,tcp"})
  void aKilledPeerIsLost(String tls) throws Exception {
    Process server = UcxTests.selfTest(tls, "server", "--listen", "127.0.0.1:0");
    try (UcxNode node = node(tls)) {
      InetSocketAddress at = SelfTestOptions.address(UcxTests.say(server, "listening "));
      UcxChannel channel = node.connect(at, 5000);
      List<Service> told = new ArrayList<>();
      channel.onClose((service, why) -> told.add(service));
      server.destroyForcibly();
      IOException lost =
          assertThrows(IOException.class, () -> channel.read(ByteBuffer.allocate(1), 60_000));
      assertFalse(lost instanceof SocketTimeoutException, lost.toString());
      channel.close();
      assertEquals(List.of(Service.LOST), told);
    } finally {
      server.destroyForcibly();
    }
  }

  /** A peer that takes nothing: the window stops the writer. */
  private static void fill(UcxChannel channel) throws IOException {
    ByteBuffer block = ByteBuffer.allocateDirect(1 << 20);
    for (int i = 0; i < 64; i++) {
      channel.write(block.clear(), 300);
    }
  }

  private static void signal(Process process, String name) throws Exception {
    assertEquals(0, new ProcessBuilder("kill", "-" + name, "" + process.pid()).start().waitFor());
  }

  private static boolean isStopped(Process process) {
    try (Stream<Path> threads = Files.list(Path.of("/proc/" + process.pid() + "/task"))) {
      return threads.allMatch(TwoProcessesTest::isStopped);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static boolean isStopped(Path thread) {
    try {
      return Files.readString(thread.resolve("stat")).matches("(?s).*\\) T .*");
    } catch (IOException e) {
      return true; // it has ended
    }
  }

  /** Opens as many streams as told, each from a node of its own, and writes without end. */
  static final class Clients {
    private Clients() {}

    /** Arguments: UCX_TLS, port, count. */
    public static void main(String[] arguments) throws Exception {
      for (int i = 0; i < Integer.parseInt(arguments[2]); i++) {
        UcxNode node =
            UcxNode.open(
                UcxSettings.builder()
                    .tls(arguments[0])
                    .set(Setting.UCX_WORKERS, 1)
                    .set(Setting.UCX_POOL_BYTES, 4 << 20)
                    .build());
        UcxChannel channel =
            node.connect(SelfTestOptions.address("127.0.0.1:" + arguments[1]), 20_000);
        Thread writer =
            new Thread(
                () -> {
                  ByteBuffer block = ByteBuffer.allocateDirect(100_000);
                  try {
                    for (; ; ) {
                      channel.write(block.clear(), 0);
                    }
                  } catch (IOException e) {
                    System.out.println(e);
                  }
                });
        writer.start();
      }
    }
  }

  /** A hundred clients, 25 in a process, some killed while what they send waits to be read. */
  @ParameterizedTest
  @ValueSource(strings = {"tcp", "posix,cma,tcp"})
  void killedClientsLeaveNothingBehind(String tls) throws Exception {
    int processes = 4;
    int each = 25;
    UcxSettings small = UcxSettings.builder().tls(tls).set(Setting.UCX_POOL_BYTES, BOUND).build();
    try (UcxNode node = UcxNode.open(small);
        UcxListener listener = node.listen(UcxTests.ANY, 128)) {
      List<Process> clients = new ArrayList<>();
      List<UcxChannel> channels = new ArrayList<>();
      try {
        for (int i = 0; i < processes; i++) {
          String port = "" + listener.address().getPort();
          clients.add(UcxTests.java(Clients.class, tls, port, "" + each));
          for (int j = 0; j < each; j++) {
            UcxChannel channel = listener.accept(30_000);
            channels.add(channel);
            if (j % 2 == 0) {
              assertTrue(channel.read(ByteBuffer.allocate(300_000), 10_000) > 0);
            }
          }
          assertTrue(node.metrics().registeredBytes() <= BOUND);
        }
        assertEquals(processes * each, node.metrics().endpointsOpen());
      } finally {
        clients.forEach(Process::destroyForcibly);
      }
      for (UcxChannel channel : channels) {
        assertThrows(IOException.class, () -> drain(channel));
        assertTrue(channel.peerGone(), "it has died, and not ended its stream");
        channel.close();
      }
      UcxTests.eventually(
          "" + node.metrics(),
          () -> {
            node.trimPool();
            UcxMetrics now = node.metrics();
            return now.streamsOpen() == 0
                && now.endpointsOpen() == 0
                && now.pooledBytesInUse() == 0
                && now.registeredBytes() == 0;
          });
    }
  }

  private static void drain(UcxChannel channel) throws IOException {
    ByteBuffer block = ByteBuffer.allocateDirect(1 << 20);
    while (channel.read(block.clear(), 10_000) >= 0) {
      // until the death of the peer is seen
    }
  }
}

package io.trunkline.hadoop.ucx;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Streams between JVMs, over TCP and over shared memory; peers that die or stop. */
@Timeout(120)
class TwoProcessesTest {
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
        channel.write(ByteBuffer.allocate(16).putLong(5).putLong(1).flip(), 5000);
        channel.write(ByteBuffer.allocate(1), 5000);
        ByteBuffer answer = ByteBuffer.allocate(1);
        assertThrows(SocketTimeoutException.class, () -> channel.read(answer, 300));
        assertThrows(SocketTimeoutException.class, () -> fill(channel));
        signal(server, "CONT");
      }
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

  @Test
  void killedClientsLeaveNothingBehind() throws Exception {
    try (UcxNode node = node("posix,cma,tcp");
        UcxListener listener = node.listen(UcxTests.ANY, 128)) {
      String at = "127.0.0.1:" + listener.address().getPort();
      List<Process> clients = new ArrayList<>();
      List<UcxChannel> channels = new ArrayList<>();
      try {
        for (int i = 0; i < 8; i++) {
          clients.add(UcxTests.selfTest("posix,cma,tcp", "flood", "--connect", at));
        }
        for (int i = 0; i < clients.size(); i++) {
          UcxChannel channel = listener.accept(30_000);
          assertTrue(channel.read(ByteBuffer.allocate(100_000), 10_000) > 0);
          channels.add(channel);
        }
      } finally {
        clients.forEach(Process::destroyForcibly);
      }
      for (UcxChannel channel : channels) {
        assertThrows(IOException.class, () -> drain(channel));
        channel.close();
      }
      UcxTests.eventually(
          "" + node.metrics(),
          () -> {
            node.trimPool();
            UcxMetrics now = node.metrics();
            return now.streamsOpen() == 0 && now.endpointsOpen() == 0 && now.registeredBytes() == 0;
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

package io.trunkline.hadoop.transport;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.trunkline.hadoop.conf.TrafficCategory;
import io.trunkline.hadoop.stats.Fallback;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.channels.SocketChannel;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.junit.jupiter.api.Test;

/** A plug-in that is there, refuses, has moved, or is gone. */
class PluginDialerTest {
  private static final InetSocketAddress DATA_NODE = new InetSocketAddress("127.0.0.5", 9866);

  private final Deque<DataNodeRecord> answers = new ArrayDeque<>();
  private final Deque<DataNodeRecord> others = new ArrayDeque<>();
  private final List<Integer> dialled = new ArrayList<>();
  private final List<Integer> limits = new ArrayList<>();
  private long nanos;
  private long refusalNanos;
  private final Discovery discovery =
      new Discovery(
          new Discovery.Question() {
            @Override
            public DataNodeRecord ask(InetSocketAddress dataNode) throws IOException {
              if (answers.isEmpty()) {
                throw new IOException("no answer");
              }
              return answers.poll();
            }

            @Override
            public DataNodeRecord askPast(InetSocketAddress dataNode) {
              return others.poll();
            }
          },
          1,
          () -> nanos);
  private final PluginDialer dialer =
      new PluginDialer(discovery, Fallback.NOT_NAMED, 5000, () -> nanos);
  private boolean abandoned;
  private int listening;
  private int pretender;

  private final class Call implements Dial {
    private final int timeoutMs;

    Call(int timeoutMs) {
      this.timeoutMs = timeoutMs;
    }

    @Override
    public InetSocketAddress dataNode() {
      return DATA_NODE;
    }

    @Override
    public int timeoutMs() {
      return timeoutMs;
    }

    @Override
    public Socket socket() {
      return null;
    }

    @Override
    public TrafficCategory category() {
      return null;
    }

    @Override
    public boolean abandoned() {
      return abandoned;
    }

    @Override
    public SocketChannel tcp(InetSocketAddress to, int limitMs) {
      throw new AssertionError("not by TCP");
    }
  }

  private void dial(int timeoutMs) throws NotServed, IOException {
    dialer.connect(
        new Call(timeoutMs),
        (plugin, limitMs) -> {
          dialled.add(plugin.getPort());
          limits.add(limitMs);
          if (plugin.getPort() == pretender) {
            nanos += refusalNanos;
            throw new PluginDialer.Unproven(Fallback.HANDSHAKE, new IOException("wrong password"));
          }
          if (plugin.getPort() != listening) {
            nanos += refusalNanos;
            throw new ConnectException("refused");
          }
          return null;
        });
  }

  private static DataNodeRecord at(int port) {
    return new DataNodeRecord(1, true, "", port, "");
  }

  @Test
  void oneThatListensIsConnectedTo() throws Exception {
    answers.add(at(1));
    listening = 1;
    dial(0);
    dial(700);
    dial(60_000);
    assertEquals(List.of(1, 1, 1), dialled);
    assertEquals(List.of(5000, 700, 5000), limits);
  }

  @Test
  void oneThatHasMovedIsFoundAgain() throws Exception {
    answers.add(at(1));
    listening = 1;
    dial(0);
    listening = 2;
    answers.add(at(2));
    dial(0);
    dial(0);
    assertEquals(List.of(1, 1, 2, 2), dialled);
  }

  @Test
  void bothAttemptsTogetherHaveTheTimeOfOne() throws Exception {
    answers.add(at(1));
    answers.add(at(2));
    listening = 2;
    refusalNanos = 600_000_000L;
    dial(1000);
    assertEquals(List.of(1000, 400), limits);
    answers.add(at(3));
    listening = 3;
    refusalNanos = 1_000_000_000L;
    NotServed refusal = assertThrows(NotServed.class, () -> dial(1000));
    assertEquals(Fallback.PLUGIN_UNREACHABLE, refusal.reason());
    assertEquals(List.of(1, 2, 2), dialled);
  }

  @Test
  void oneThatTakesNoConnectionIsUnreachable() {
    answers.add(at(1));
    answers.add(at(1));
    NotServed refusal = assertThrows(NotServed.class, () -> dial(0));
    assertEquals(Fallback.PLUGIN_UNREACHABLE, refusal.reason());
    assertEquals("refused", refusal.getMessage());
    assertEquals(List.of(1), dialled);
    refusal = assertThrows(NotServed.class, () -> dial(0));
    assertEquals(Fallback.PLUGIN_UNREACHABLE, refusal.reason());
    assertEquals("refused", refusal.getMessage());
    assertEquals(List.of(1), dialled, "not every operation waits for it");
  }

  /** A stranger's answer leads to one who takes connections, and is not who he says he is. */
  @Test
  void oneThatIsNotTheDataNodeIsAskedPast() throws Exception {
    pretender = 1;
    answers.add(at(1));
    answers.add(at(1));
    others.add(at(2));
    listening = 2;
    refusalNanos = 5_000_000_000L;
    dial(7000);
    dial(0);
    assertEquals(List.of(1, 2, 2), dialled);
    assertEquals(List.of(5000, 2000, 5000), limits, "whatever time he takes");
  }

  @Test
  void oneThatIsNotTheDataNodeIsNotUnreachable() {
    pretender = 1;
    for (int i = 0; i < 4; i++) {
      answers.add(at(1));
    }
    for (int i = 0; i < 2; i++) {
      NotServed refusal = assertThrows(NotServed.class, () -> dial(0));
      assertEquals(Fallback.HANDSHAKE, refusal.reason());
    }
    assertEquals(List.of(1, 1), dialled);
  }

  @Test
  void refusalAndSilenceAreToldApart() {
    answers.add(new DataNodeRecord(1, false, "", 0, "tokens are on"));
    NotServed refusal = assertThrows(NotServed.class, () -> dial(0));
    assertEquals(Fallback.NOT_NAMED, refusal.reason());
    assertEquals("tokens are on", refusal.getMessage());
    discovery.forget(DATA_NODE, discovery.route(DATA_NODE));
    refusal = assertThrows(NotServed.class, () -> dial(0));
    assertEquals(Fallback.NO_PLUGIN, refusal.reason());
  }

  @Test
  void anotherHostAndAnotherVersionAreToldApart() {
    answers.add(new DataNodeRecord(1, true, "10.0.0.66", 1, ""));
    NotServed refusal = assertThrows(NotServed.class, () -> dial(0));
    assertEquals(Fallback.OTHER_HOST, refusal.reason());
    discovery.forget(DATA_NODE, discovery.route(DATA_NODE));
    answers.add(new DataNodeRecord(2, true, "", 1, ""));
    refusal = assertThrows(NotServed.class, () -> dial(0));
    assertEquals(Fallback.OTHER_VERSION, refusal.reason());
    assertEquals(List.of(), dialled);
  }

  @Test
  void aSocketThatWasClosedMeanwhileIsNoRefusal() {
    answers.add(at(1));
    abandoned = true;
    ConnectException e = assertThrows(ConnectException.class, () -> dial(0));
    assertSame(ConnectException.class, e.getClass());
    assertEquals(List.of(1), dialled);
  }
}

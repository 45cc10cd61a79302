package io.trunkline.hadoop.ucx;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.conf.Setting;
import io.trunkline.hadoop.conf.UcxSettings;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Who drives a worker. */
@Timeout(60)
class IoWorkerTest {
  private static final int LIMIT_MS = 20_000;
  private static final int MESSAGES = 1000;

  @BeforeEach
  void need() {
    UcxTests.needUcx();
  }

  private static UcxNode node(int workers) throws IOException {
    return UcxNode.open(
        UcxSettings.builder()
            .tls("posix,cma,tcp")
            .set(Setting.UCX_WORKERS, workers)
            .set(Setting.UCX_SPIN_US, 0)
            .build());
  }

  private static void pass(UcxChannel from, UcxChannel to, int value) throws IOException {
    from.write(ByteBuffer.wrap(new byte[] {(byte) value}), LIMIT_MS);
    ByteBuffer got = ByteBuffer.allocate(1);
    to.read(got, LIMIT_MS);
    assertEquals((byte) value, got.get(0));
  }

  /** As a client of HDFS, one thread of which sends packets while another waits for their acks. */
  @Test
  void aWriterDoesNotWakeTheReaderThatSleeps() throws Exception {
    try (UcxNode node = node(1);
        UcxNode peer = node(1);
        UcxListener listener = peer.listen(UcxTests.ANY, 16);
        UcxChannel here = node.connect(listener.address(), LIMIT_MS);
        UcxChannel there = listener.accept(LIMIT_MS)) {
      CompletableFuture<Integer> reader =
          CompletableFuture.supplyAsync(
              () -> {
                try {
                  ByteBuffer answer = ByteBuffer.allocate(1);
                  here.read(answer, LIMIT_MS);
                  return (int) answer.get(0);
                } catch (IOException e) {
                  throw new UncheckedIOException(e);
                }
              },
              task -> new Thread(task).start());
      long before = node.metrics().wakeups();
      for (int i = 0; i < MESSAGES; i++) {
        pass(here, there, i);
      }
      long woken = node.metrics().wakeups() - before;
      assertTrue(woken < MESSAGES / 2, woken + " times for " + MESSAGES + " messages");
      there.write(ByteBuffer.wrap(new byte[] {42}), LIMIT_MS);
      assertEquals(42, reader.get(LIMIT_MS, TimeUnit.MILLISECONDS));
    }
  }

  /** As a DataNode in a pipeline, which reads from one and writes to the next. */
  @Test
  void aStreamGoesToTheWorkerThatHasTheFewest() throws Exception {
    try (UcxNode node = node(2);
        UcxNode peer = node(1);
        UcxListener listener = peer.listen(UcxTests.ANY, 16);
        UcxChannel first = node.connect(listener.address(), LIMIT_MS)) {
      assertFalse(hasSecondWorker(), "one stream needs one worker");
      try (UcxChannel second = node.connect(listener.address(), LIMIT_MS)) {
        assertTrue(hasSecondWorker());
        assertNotEquals(first.stream().worker(), second.stream().worker());
        first.close();
        UcxTests.eventually("one is left", () -> node.metrics().streamsOpen() == 1);
        try (UcxChannel third = node.connect(listener.address(), LIMIT_MS)) {
          assertNotEquals(second.stream().worker(), third.stream().worker());
          assertEquals(2, node.metrics().endpointsConnected());
        }
      }
    }
  }

  private static boolean hasSecondWorker() {
    return Thread.getAllStackTraces().keySet().stream()
        .anyMatch(thread -> thread.getName().equals("trunkline-ucx-1"));
  }

  /** What is refused, or given up, is not counted as open, nor less than nothing is. */
  @Test
  void aRefusedStreamCountsNoMore() throws Exception {
    try (UcxNode node = node(1);
        UcxNode peer = node(1);
        UcxListener listener = peer.listen(UcxTests.ANY, 1);
        UcxChannel waiting = node.connect(listener.address(), LIMIT_MS)) {
      assertThrows(StreamRefusedException.class, () -> node.connect(listener.address(), LIMIT_MS));
      assertEquals(1, node.metrics().streamsOpen());
      assertTrue(waiting.isOpen());
    }
  }
}

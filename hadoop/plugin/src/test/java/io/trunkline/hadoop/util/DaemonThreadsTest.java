package io.trunkline.hadoop.util;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class DaemonThreadsTest {
  @Test
  void whoeverNeedsTheFirstOneItIsOfNoGroupOfStockCode() throws Exception {
    ScheduledExecutorService served =
        Executors.newSingleThreadScheduledExecutor(new DaemonThreads("served"));
    CompletableFuture<Thread> made = new CompletableFuture<>();
    try {
      ThreadGroup transfers = new ThreadGroup("transfers");
      Thread transfer =
          new Thread(
              transfers, () -> served.execute(() -> made.complete(Thread.currentThread())), "one");
      transfer.start();
      Thread thread = made.get(10, TimeUnit.SECONDS);
      transfer.join();
      assertNull(thread.getThreadGroup().getParent());
      assertEquals(0, transfers.activeCount());
      assertTrue(thread.isDaemon());
      assertEquals("served", thread.getName());
    } finally {
      served.shutdownNow();
    }
  }

  @Test
  void laterOnesAreTold() {
    DaemonThreads threads = new DaemonThreads("pool");
    assertEquals("pool", threads.newThread(() -> {}).getName());
    assertEquals("pool-2", threads.newThread(() -> {}).getName());
  }
}

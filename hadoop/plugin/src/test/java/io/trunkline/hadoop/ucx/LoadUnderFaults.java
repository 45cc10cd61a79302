package io.trunkline.hadoop.ucx;

import io.trunkline.hadoop.conf.UcxSettings;
import java.util.concurrent.atomic.LongAdder;

/**
 * Loads UCX while other threads run into SIGSEGV all the time, as Java code does where the compiler
 * leaves it to the processor to find null. Run with {@code -XX:TieredStopAtLevel=1}, whose code
 * never stops to do so.
 */
final class LoadUnderFaults {
  private static final int THREADS = 2;

  private static volatile boolean over;
  private static final LongAdder FOUND = new LongAdder();

  private LoadUnderFaults() {}

  public static void main(String[] arguments) throws Exception {
    Thread[] threads = new Thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
      threads[i] = new Thread(LoadUnderFaults::fault);
      threads[i].start();
    }
    while (FOUND.sum() < 100_000) {
      Thread.sleep(1);
    }
    try (UcxNode node = UcxNode.open(UcxSettings.builder().build())) {
      long before = FOUND.sum();
      while (FOUND.sum() < before + 100_000) {
        Thread.sleep(1);
      }
    }
    over = true;
    for (Thread thread : threads) {
      thread.join();
    }
    System.out.println("loaded");
  }

  private static void fault() {
    int[][] nothing = new int[1][];
    while (!over) {
      try {
        FOUND.add(length(nothing[0]));
      } catch (NullPointerException e) {
        FOUND.increment();
      }
    }
  }

  private static int length(int[] of) {
    return of.length;
  }
}

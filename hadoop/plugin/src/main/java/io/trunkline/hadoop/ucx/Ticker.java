package io.trunkline.hadoop.ucx;

import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** Looks after the workers of a node: one that nobody leads gets its keeper. */
final class Ticker {
  private static final long ACTIVE_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

  private final Thread thread = new Thread(this::run, "trunkline-ucx-ticker");
  private final long idleNanos;
  private List<Connections> workers;
  private Runnable maintenance;
  private volatile boolean idle;
  private volatile boolean closing;

  /**
   * A ticker.
   *
   * @param wakeCheckMs how often to look when nothing happens
   */
  Ticker(long wakeCheckMs) {
    idleNanos = TimeUnit.MILLISECONDS.toNanos(wakeCheckMs);
    thread.setDaemon(true);
  }

  /**
   * Begins.
   *
   * @param of whose workers, a list that may grow
   * @param what maintenance that is done at every tick and is short
   */
  void start(List<Connections> of, Runnable what) {
    workers = of;
    maintenance = what;
    thread.start();
  }

  /** Somebody who is not a keeper has led: look more often. */
  void hurry() {
    if (idle) {
      idle = false;
      LockSupport.unpark(thread);
    }
  }

  private void run() {
    while (!closing) {
      boolean active = false;
      idle = true;
      long now = System.nanoTime();
      for (Connections each : workers) {
        active |= each.worker().tick(now);
      }
      maintenance.run();
      if (active) {
        idle = false;
        LockSupport.parkNanos(this, ACTIVE_NANOS);
      } else if (idle) {
        LockSupport.parkNanos(this, idleNanos);
      }
    }
  }

  /** Ends; no worker is touched afterwards. */
  void close() {
    closing = true;
    boolean interrupted = false;
    while (thread.isAlive()) {
      LockSupport.unpark(thread);
      try {
        thread.join(1);
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}

package io.trunkline.hadoop.ucx;

import java.util.concurrent.locks.LockSupport;

/** A thread that waits for something that an I/O worker brings about. */
abstract class Waiter {
  private volatile Thread thread;
  private volatile IoWorker leading;

  /** Whether the wait is over. Called by any thread, often. */
  abstract boolean ready();

  final void begin() {
    thread = Thread.currentThread();
  }

  final void end() {
    thread = null;
  }

  /** The waiting thread drives this worker itself now, or (null) no longer. */
  final void leads(IoWorker worker) {
    leading = worker;
  }

  /** Waits without a worker to drive, for as long as nobody wakes it. */
  static void park(Waiter waiter, long deadlineNanos) {
    waiter.begin();
    try {
      while (!waiter.ready() && !Thread.currentThread().isInterrupted()) {
        long left = deadlineNanos - System.nanoTime();
        if (deadlineNanos == IoWorker.NO_DEADLINE) {
          LockSupport.park(waiter);
        } else if (left > 0) {
          LockSupport.parkNanos(waiter, left);
        } else {
          return;
        }
      }
    } finally {
      waiter.end();
    }
  }

  /** Has the thread look again. */
  void wake() {
    IoWorker worker = leading;
    if (worker != null) {
      worker.wake();
    }
    LockSupport.unpark(thread);
  }
}

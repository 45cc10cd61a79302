package io.trunkline.hadoop.ucx;

import java.util.Set;
import java.util.concurrent.CopyOnWriteArraySet;
import java.util.function.BooleanSupplier;

/** Threads that wait for one thing to change. */
final class Waiters {
  private final Set<Waiter> all = new CopyOnWriteArraySet<>();

  /**
   * Waits.
   *
   * @param worker that brings the change about
   * @param ready says when
   * @param deadlineNanos of {@link System#nanoTime}, or {@link IoWorker#NO_DEADLINE}
   * @return false when the deadline has passed, or the thread was interrupted, before
   */
  boolean await(IoWorker worker, BooleanSupplier ready, long deadlineNanos) {
    Waiter waiter =
        new Waiter() {
          @Override
          boolean ready() {
            return ready.getAsBoolean();
          }
        };
    all.add(waiter);
    try {
      return worker.await(waiter, deadlineNanos);
    } finally {
      all.remove(waiter);
    }
  }

  /** The thing has changed. */
  void tell() {
    for (Waiter waiter : all) {
      waiter.wake();
    }
  }
}

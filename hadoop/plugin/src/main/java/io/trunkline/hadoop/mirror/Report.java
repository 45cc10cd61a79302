package io.trunkline.hadoop.mirror;

import io.trunkline.hadoop.mirror.Answer.State;
import io.trunkline.hadoop.tap.PassThrough;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A DataNode's part of one pipeline, as the controller is told of it while the connection to the
 * next DataNode lives.
 *
 * <pre>
 *   WAITING --told--> LEASED --a third of the lease is over--> told again --> LEASED
 *      |                |---not armed in time---.
 *      |                |---never complete------|--> the pipeline is ended --> ENDED
 *      |                '---connection closed---'                                ^
 *      '---connection closed-----------------------------------------------------'
 * </pre>
 *
 * <p>Whoever reported the last connection of the pipeline counts what became of it, and ends it
 * when it is not armed in time. What was armed before may fall back, as when a switch or the
 * controller has started anew; it is told of again then, by all who have a part in it.
 */
final class Report implements PassThrough {
  /** Where no lease is known, as nothing was taken. */
  private static final long RETRY_MS = 20_000;

  private static final long SHORTEST_MS = 100;

  private final Reports reports;
  private final List<Hop> hops;
  private final boolean hasLast;

  /** Calls of {@link #wake} since {@link #run} was about to end: one runs it, for all. */
  private final AtomicInteger wakes = new AtomicInteger();

  private volatile boolean closed;

  // Below: one thread at a time, which runs.

  private boolean begun;
  private boolean ended;

  /** Whether the controller has answered once, which is what is counted. */
  private boolean judged;

  private String id = "";
  private long leaseMs = 3 * RETRY_MS;

  /** Since when connections of it are missing; meaningless while none are. */
  private long incompleteNanos;

  private boolean incomplete;
  private Future<?> next;

  /**
   * A report.
   *
   * @param reports carry it out
   * @param hops the connections of the pipeline that this DataNode knows
   */
  Report(Reports reports, List<Hop> hops) {
    this.reports = reports;
    this.hops = List.copyOf(hops);
    this.hasLast = hops.get(hops.size() - 1).last();
  }

  @Override
  public void close() {
    closed = true;
    wake();
  }

  /** Something is to be done. */
  void wake() {
    if (wakes.getAndIncrement() == 0) {
      reports.execute(this::run);
    }
  }

  private void run() {
    int seen;
    do {
      seen = wakes.get();
      try {
        step();
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
    } while (wakes.addAndGet(-seen) != 0);
  }

  private void step() throws InterruptedException {
    if (!begun) {
      begun = true;
      reports.begun();
    }
    if (next != null) {
      next.cancel(false);
      next = null;
    }
    if (!ended && !closed) {
      tell();
    }
    if (!ended && closed) {
      end();
    }
    if (!ended) {
      next = reports.later(this::wake, Math.max(SHORTEST_MS, leaseMs / 3));
    }
  }

  private void tell() throws InterruptedException {
    try {
      heard(reports.ask(hops));
    } catch (RefusedException e) {
      if (!judged) {
        judged = true;
        reports.refused(hops, e.why(), e.getMessage());
      }
    } catch (IOException e) {
      // Counted and logged; the next time may be better.
    }
  }

  private void heard(Answer answer) throws InterruptedException {
    id = answer.id();
    leaseMs = answer.leaseMs();
    if (!judged) {
      judged = true;
      judge(answer);
    }
    if (answer.state() != State.ANNOUNCED) {
      incomplete = false;
    } else if (!incomplete) {
      incomplete = true;
      incompleteNanos = System.nanoTime();
    } else if (System.nanoTime() - incompleteNanos > TimeUnit.MILLISECONDS.toNanos(leaseMs)) {
      end(); // another DataNode does not report, or has given it up
    }
  }

  private void judge(Answer answer) throws InterruptedException {
    if (answer.state() == State.REFUSED) {
      reports.refused(hops, answer.why(), answer.what());
    } else if (hasLast && answer.state() == State.ARMED) {
      reports.armed(hops);
    } else if (hasLast) {
      reports.late(hops);
      end();
    }
  }

  private void end() throws InterruptedException {
    if (!ended) {
      ended = true;
      if (!id.isEmpty()) {
        reports.end(id);
      }
      reports.ended();
    }
  }
}

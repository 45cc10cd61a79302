package io.trunkline.hadoop.mirror;

import io.trunkline.hadoop.mirror.Answer.State;
import io.trunkline.hadoop.tap.PassThrough;
import java.io.IOException;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * A DataNode's part of one pipeline, as the controller is told of it while the connection to the
 * next DataNode lives.
 *
 * <pre>
 *   WAITING --told--> LEASED --a third of the lease is over, or--> told again --> LEASED
 *      |                |      connections of others are missing
 *      |                |---never complete------.
 *      |                '---connection closed---'--> the pipeline is ended --> ENDED
 *      '---connection closed-----------------------------------------------------^
 * </pre>
 *
 * <p>Whoever reported the last connection of the pipeline counts what became of it. The time for
 * that begins when all connections are known; until then it asks again. A pipeline that is late
 * stays, as copies help the rest of the block whenever they begin. What was armed before may fall
 * back, as when a switch or the controller has started anew; it is told of again then, by all who
 * have a part in it.
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

  /** Whether it was counted what became of the pipeline, by who reported its last connection. */
  private boolean judged;

  /** Reasons for which it was refused so far: each counts once. */
  private final Set<String> reasons = new HashSet<>();

  private String id = "";
  private long leaseMs = 3 * RETRY_MS;
  private long leasedUntilNanos;

  /** Since when connections of it are missing; meaningless while none are. */
  private long incompleteNanos;

  private boolean incomplete;

  /** How long to wait before asking again whether the others are known. */
  private long askAgainMs = SHORTEST_MS;

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
  public void headerSent() {
    wake();
  }

  @Override
  public void close() {
    closed = true;
    wake();
  }

  /** Something is to be done. */
  private void wake() {
    if (wakes.getAndIncrement() == 0) {
      reports.execute(this::run);
    }
  }

  private void run() {
    int seen;
    do {
      seen = wakes.get();
      step();
    } while (wakes.addAndGet(-seen) != 0);
  }

  private void step() {
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
      next = reports.later(this::wake, Math.max(SHORTEST_MS, nextMs()));
    }
  }

  /** When to tell it again; soon and then less and less so while who has to judge it can't yet. */
  private long nextMs() {
    long renewMs = leaseMs / 3;
    if (!hasLast || judged || !incomplete) {
      return renewMs;
    }
    long soonMs = askAgainMs;
    askAgainMs = Math.min(2 * soonMs, renewMs);
    return Math.min(soonMs, renewMs);
  }

  private void tell() {
    try {
      heard(reports.ask(hops, hasLast && !judged));
    } catch (IOException e) {
      // Counted and logged; the next time may be better.
    }
  }

  private void heard(Told told) {
    for (RefusedException refusal : told.refusals()) {
      refused(refusal.why(), refusal.getMessage());
    }
    Answer answer = told.answer();
    if (answer == null) {
      return;
    }
    id = answer.id();
    leaseMs = answer.leaseMs();
    leasedUntilNanos = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(leaseMs);
    if (!told.refusals().isEmpty()) {
      return; // the pipeline lacks a connection of our own
    }
    if (answer.state() == State.ANNOUNCED) {
      othersAreMissing();
    } else {
      incomplete = false;
      judge(answer);
    }
  }

  private void othersAreMissing() {
    if (!incomplete) {
      incomplete = true;
      incompleteNanos = System.nanoTime();
    } else if (System.nanoTime() - incompleteNanos > TimeUnit.MILLISECONDS.toNanos(leaseMs)) {
      reports.incomplete(hops); // another DataNode does not report, or has given it up
      end();
    }
  }

  private void judge(Answer answer) {
    if (answer.state() == State.REFUSED) {
      refused(answer.why(), answer.what());
    } else if (hasLast && !judged) {
      if (answer.state() == State.ARMED) {
        reports.armed(hops);
      } else {
        reports.late(hops);
      }
    }
    judged = true;
  }

  private void refused(String why, String what) {
    String reason = reports.reason(why);
    if (reasons.add(reason)) {
      reports.refused(hops, reason, what);
    }
  }

  private void end() {
    if (!ended) {
      ended = true;
      if (!id.isEmpty()) {
        reports.end(id, leasedUntilNanos);
      }
      reports.ended();
    }
  }
}

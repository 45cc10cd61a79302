package io.trunkline.hadoop.ucx;

import io.trunkline.hadoop.conf.Setting;
import io.trunkline.hadoop.conf.UcxSettings;
import io.trunkline.hadoop.util.LogLimit;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.openucx.jucx.UcxException;
import org.openucx.jucx.ucp.UcpContext;
import org.openucx.jucx.ucp.UcpWorker;
import org.openucx.jucx.ucp.UcpWorkerParams;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One UCX worker, and the rule who calls it. UCX works only while somebody calls it, and only one
 * thread may at a time. It mostly is the one that leads:
 *
 * <pre>
 *   a thread that waits for data of its stream  leads, and serves all other streams meanwhile;
 *   more such threads                           follow: they park, and one of them leads next;
 *   the keeper, a thread of the worker's own    leads while nobody else does;
 *   a writer, while its leader sleeps           sends by itself, and goes on.
 * </pre>
 *
 * So a stream in full flow costs no hand-over between threads, and an idle one is still served. A
 * leader without events spins for a short time, longer if that has paid lately, and then sleeps
 * until UCX or {@link #wake} wakes it.
 */
final class IoWorker {
  /** A wait that never ends by itself. */
  static final long NO_DEADLINE = Long.MAX_VALUE;

  private static final Logger LOG = LoggerFactory.getLogger(IoWorker.class);

  /** A leader without events for that long leaves the lead to the keeper. */
  private static final long FRUITLESS_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

  /** The keeper takes a lead that nobody has had for that long. */
  private static final long VACANT_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  /** A follower looks again that often, should its leader have forgotten it. */
  private static final long FOLLOW_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

  /** The same for one that waits for long already. */
  private static final long PATIENT_NANOS = TimeUnit.MILLISECONDS.toNanos(500);

  private static final long CLAIM_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  private final Ticker ticker;
  private final Counters counters;
  private final boolean busy;
  private final Spin spin;
  private final long wakeCheckNanos;
  private final UcpWorker ucp;
  private final long ucpId;
  private final int ucpEvents;
  private final DutyCycle dutyCycle;
  private final Thread keeper;

  /** Held by the leader. */
  private final ReentrantLock lead = new ReentrantLock();

  /** Held by who calls UCX: the leader, but for its sleep, and then who sends. */
  private final ReentrantLock calls = new ReentrantLock();

  private final ConcurrentLinkedDeque<Waiter> followers = new ConcurrentLinkedDeque<>();
  private final AtomicInteger claims = new AtomicInteger();
  private volatile boolean keeperLeads;
  private volatile boolean sleeping;
  private volatile long vacantNanos = System.nanoTime();
  private volatile boolean closing;
  private boolean closed;

  /**
   * A worker; {@link #start} makes it work.
   *
   * @param index its number, for names
   * @param context of UCX
   * @param settings how to wait
   * @param ticker sees to it that somebody leads
   * @param counters counts wake-ups
   */
  IoWorker(int index, UcpContext context, UcxSettings settings, Ticker ticker, Counters counters) {
    this.ticker = ticker;
    this.counters = counters;
    busy = settings.polling() == UcxSettings.Polling.BUSY;
    spin = new Spin(TimeUnit.MICROSECONDS.toNanos(settings.get(Setting.UCX_SPIN_US)));
    wakeCheckNanos = TimeUnit.MILLISECONDS.toNanos(settings.get(Setting.UCX_WAKE_CHECK_MS));
    ucp = context.newWorker(new UcpWorkerParams().requestWakeupRX().requestWakeupTX());
    ucpId = ucp.getNativeId();
    ucpEvents = ucp.getEventFD();
    dutyCycle = new DutyCycle(ucp);
    keeper = new Thread(this::keep, "trunkline-ucx-" + index);
    keeper.setDaemon(true);
  }

  UcpWorker ucp() {
    return ucp;
  }

  /**
   * Begins to work.
   *
   * @param work what there is to do
   */
  void start(DutyCycle.Work work) {
    dutyCycle.start(work);
    keeper.start();
  }

  /** Has the leader, woken if it sleeps, run something; runs it at once when nobody leads. */
  void execute(Runnable task) {
    dutyCycle.add(task);
    poke();
  }

  /** Has the leader run something after what it does now. */
  void later(Runnable task) {
    dutyCycle.add(task);
  }

  /** Something is due: does it now if nobody leads or the leader sleeps, else leaves it to it. */
  void poke() {
    if (calls.isHeldByCurrentThread()) {
      return;
    }
    if (lead.tryLock()) {
      calls.lock();
      try {
        dutyCycle.run(0);
      } finally {
        release();
      }
    } else {
      boolean all = false;
      try {
        all = sendMeanwhile();
      } finally {
        if (!all) {
          wake();
        }
      }
    }
  }

  /**
   * Sends what is due while the leader sleeps: to wake it for that would cost a switch to its
   * thread.
   *
   * @return false when something is left for the leader
   */
  private boolean sendMeanwhile() {
    if (!sleeping || dutyCycle.hasTasks() || !calls.tryLock()) {
      return false;
    }
    try {
      return dutyCycle.send();
    } finally {
      calls.unlock();
    }
  }

  /** Has a sleeping leader look again. */
  void wake() {
    if (sleeping) {
      signal();
    }
  }

  /** Whoever saw it asleep may come late. */
  private void signal() {
    synchronized (ucp) {
      if (!closed) {
        ucp.signal();
      }
    }
  }

  /**
   * Waits, leading or following. Takes the lead if it is free, or from the keeper.
   *
   * <p>This and {@link #lead} are longer than what HotSpot inlines (FreqInlineSize, 325 bytes of
   * bytecode), on purpose: to compile them into everything that reads or writes would cost a
   * client, which lives for seconds, more than calling them.
   *
   * @param waiter says when the wait is over
   * @param deadlineNanos of {@link System#nanoTime}, or {@link #NO_DEADLINE}
   * @return false when the deadline has passed or the thread was interrupted before
   */
  boolean await(Waiter waiter, long deadlineNanos) {
    boolean patient = false;
    waiter.begin();
    try {
      while (!waiter.ready()) {
        if (expired(deadlineNanos, System.nanoTime()) || Thread.currentThread().isInterrupted()) {
          return waiter.ready();
        }
        boolean leads = !patient && lead.tryLock();
        if (!patient && !leads && keeperLeads) {
          claims.incrementAndGet();
          try {
            wake();
            leads = lead.tryLock(CLAIM_NANOS, TimeUnit.NANOSECONDS);
          } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
          } finally {
            claims.decrementAndGet();
          }
        }
        if (leads) {
          calls.lock();
          waiter.leads(this);
          try {
            patient = lead(waiter, deadlineNanos);
          } finally {
            waiter.leads(null);
            release();
            if (patient) {
              LockSupport.unpark(keeper);
            }
          }
          continue;
        }
        if (!patient) {
          followers.add(waiter);
        }
        try {
          if ((patient || lead.isLocked()) && !waiter.ready()) {
            long nanos = patient ? PATIENT_NANOS : FOLLOW_NANOS;
            if (deadlineNanos != NO_DEADLINE) {
              nanos = Math.min(nanos, deadlineNanos - System.nanoTime());
            }
            LockSupport.parkNanos(nanos);
          }
        } finally {
          if (!patient) {
            followers.remove(waiter);
          }
        }
      }
      return true;
    } finally {
      waiter.end();
    }
  }

  private static boolean expired(long deadlineNanos, long nowNanos) {
    return deadlineNanos != NO_DEADLINE && nowNanos - deadlineNanos >= 0;
  }

  /** Gives up the lead; what came in meanwhile is done, and a follower leads next. */
  private void release() {
    vacantNanos = System.nanoTime();
    calls.unlock();
    lead.unlock();
    while (dutyCycle.due() && lead.tryLock()) {
      calls.lock();
      try {
        dutyCycle.run(0);
      } finally {
        calls.unlock();
        lead.unlock();
      }
    }
    Waiter next = followers.peek();
    if (next != null) {
      next.wake();
    }
    ticker.hurry();
  }

  /**
   * Drives the worker.
   *
   * @param waiter whose wait it is, null for the keeper
   * @return true when the waiter had better let the keeper lead
   */
  private boolean lead(Waiter waiter, long deadlineNanos) {
    long now = System.nanoTime();
    long fruitlessAt = now + FRUITLESS_NANOS;
    long spinUntil = now + spin.nanos();
    boolean spun = false;
    int polled = 0;
    for (; ; ) {
      int done = dutyCycle.run(polled);
      polled = 0;
      if (waiter == null ? claims.get() > 0 : waiter.ready()) {
        return false;
      }
      now = System.nanoTime();
      if (closing || expired(deadlineNanos, now)) {
        return false;
      }
      if (done > 0) {
        if (spun) {
          spin.paid();
          spun = false;
        }
        fruitlessAt = now + FRUITLESS_NANOS;
        spinUntil = now + spin.nanos();
      } else if (busy || now - spinUntil < 0) {
        spun = true;
        polled = dutyCycle.poll(now);
      } else if (waiter != null && now - fruitlessAt >= 0) {
        return true;
      } else {
        if (spun) {
          spin.wasted();
          spun = false;
        }
        long most = mostSleep(waiter, now, fruitlessAt, deadlineNanos);
        sleeping = true;
        try {
          boolean called = waiter == null ? claims.get() > 0 : waiter.ready();
          if (!called && !dutyCycle.due() && !closing && UcxNative.arm(ucpId)) {
            calls.unlock();
            try {
              UcxNative.sleep(ucpEvents, most);
            } finally {
              // From here on it does by itself what is due: nobody goes before it any more.
              sleeping = false;
              calls.lock();
            }
            counters.wakeups.increment();
          }
        } finally {
          sleeping = false;
        }
        spinUntil = System.nanoTime() + spin.nanos();
      }
    }
  }

  private long mostSleep(Waiter waiter, long nowNanos, long fruitlessAt, long deadlineNanos) {
    long most = wakeCheckNanos;
    if (waiter != null) {
      most = Math.min(most, fruitlessAt - nowNanos);
    }
    if (deadlineNanos != NO_DEADLINE) {
      most = Math.min(most, deadlineNanos - nowNanos);
    }
    return most;
  }

  private void keep() {
    LogLimit lines = new LogLimit();
    while (!closing) {
      if (claims.get() == 0 && lead.tryLock()) {
        keeperLeads = true;
        calls.lock();
        try {
          lead(null, NO_DEADLINE);
        } catch (UcxException e) {
          // The ticker has it try again within milliseconds.
          if (lines.allows()) {
            LOG.warn("UCX: worker failed; retrying: {}", e.toString());
          }
        } finally {
          keeperLeads = false;
          release();
        }
      }
      if (!closing) {
        LockSupport.park(this);
      }
    }
  }

  /**
   * Looks whether it has a leader.
   *
   * @return whether it wants to be looked at again soon
   */
  boolean tick(long nowNanos) {
    if (!lead.isLocked() && nowNanos - vacantNanos >= VACANT_NANOS) {
      LockSupport.unpark(keeper);
    }
    return !keeperLeads;
  }

  /**
   * Ends its thread and the worker. Nobody waits on it any more.
   *
   * @param last what has to be done with UCX before
   */
  void close(Runnable last) {
    closing = true;
    boolean interrupted = false;
    while (keeper.isAlive()) {
      wake();
      LockSupport.unpark(keeper);
      try {
        keeper.join(1);
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    lead.lock();
    calls.lock();
    try {
      dutyCycle.run(0);
      last.run();
      synchronized (ucp) {
        closed = true;
        ucp.close();
      }
    } finally {
      calls.unlock();
      lead.unlock();
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}

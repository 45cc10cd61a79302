package io.trunkline.hadoop.ucx;

import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import org.openucx.jucx.ucp.UcpWorker;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What whoever may call a worker does when it does: UCX's events, tasks of other threads, and
 * duties. But for the few methods that say so, of who may call UCX alone: see {@link IoWorker}.
 */
final class DutyCycle {
  /** Something to be done again and again. */
  interface Duty {
    /**
     * Whether there is anything to do.
     *
     * @param nowNanos of {@link System#nanoTime}
     */
    boolean due(long nowNanos);

    /**
     * Does what is due.
     *
     * @return how much was done
     */
    int run();
  }

  /** All that there is to do beside UCX's events and tasks. */
  interface Work {
    /** What to look at when UCX had events or something is due, and every now and then. */
    List<Duty> duties();

    /** Whether something of it is due that UCX does not announce. Any thread. */
    boolean pending();

    /** That one of the duties which sends. */
    Duty sending();

    /** Whether something that was sent, or could not be, needs UCX to be called. */
    boolean unsent();
  }

  private static final Logger LOG = LoggerFactory.getLogger(DutyCycle.class);

  /** A spinning leader looks that often at all that it has to do. */
  private static final long POLL_NANOS = TimeUnit.MICROSECONDS.toNanos(50);

  /** Pauses of a spinning leader between two questions to UCX, about a microsecond. */
  private static final int PAUSES = 16;

  /** Duties are looked at that often though nothing has happened. */
  private static final long DUTIES_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

  private final UcpWorker ucp;
  private final Queue<Runnable> tasks = new ConcurrentLinkedQueue<>();
  private Duty[] duties;
  private long dutiesNanos = System.nanoTime();
  private Duty sending;
  private Work work;

  DutyCycle(UcpWorker ucp) {
    this.ucp = ucp;
  }

  /** Says what there is to do; called once, before anything else is. */
  void start(Work what) {
    work = what;
    duties = what.duties().toArray(new Duty[0]);
    sending = what.sending();
  }

  /** Has something done in the next cycle. Any thread. */
  void add(Runnable task) {
    tasks.add(task);
  }

  /** Whether tasks wait. Any thread. */
  boolean hasTasks() {
    return !tasks.isEmpty();
  }

  /** Whether there is anything to do that UCX does not announce. Any thread. */
  boolean due() {
    return hasTasks() || work.pending();
  }

  /**
   * Sends what is due, without asking UCX for events.
   *
   * @return false when something is left to do
   */
  boolean send() {
    perform(sending);
    return !work.unsent() && !due();
  }

  /**
   * A cycle. A client lives for seconds, most of them with its code half compiled: what has nothing
   * to do is not called, so that it does not look hot to the JIT, either.
   *
   * @param polled events that UCX has had already, and nobody has looked after
   * @return how much was done
   */
  int run(int polled) {
    int done = polled + progress();
    if (hasTasks()) {
      done += runTasks();
    }
    long now = System.nanoTime();
    if (done == 0 && !work.pending() && now - dutiesNanos < DUTIES_NANOS) {
      return 0;
    }
    dutiesNanos = now;
    for (Duty duty : duties) {
      if (duty.due(now)) {
        done += perform(duty);
      }
    }
    return done;
  }

  /**
   * One call site for all duties: the JIT compiles each once, and not into everything that reads or
   * writes.
   */
  private static int perform(Duty duty) {
    try {
      return duty.run();
    } catch (RuntimeException e) {
      LOG.warn("UCX: error in the plug-in", e);
      return 0;
    }
  }

  /**
   * Asks UCX alone for events, for a short time: a spin that ran all duties would cost far more.
   *
   * @param nowNanos of {@link System#nanoTime}
   * @return events that UCX had, to be handed to {@link #run}
   */
  int poll(long nowNanos) {
    int done;
    do {
      for (int i = 0; i < PAUSES; i++) {
        Thread.onSpinWait();
      }
      done = progress();
    } while (done == 0 && !due() && System.nanoTime() - nowNanos < POLL_NANOS);
    return done;
  }

  private int progress() {
    try {
      return ucp.progress();
    } catch (Exception e) {
      LOG.warn("UCX: progress failed: {}", e.toString());
      return 0;
    }
  }

  private int runTasks() {
    int done = 0;
    for (Runnable task = tasks.poll(); task != null; task = tasks.poll()) {
      try {
        task.run();
      } catch (RuntimeException e) {
        LOG.warn("UCX: error in the plug-in", e);
      }
      done++;
    }
    return done;
  }
}

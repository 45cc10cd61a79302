package io.trunkline.hadoop.mirror;

import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.function.LongSupplier;

/**
 * Pipelines that have ended and of whose end the controller could not be told yet. One is forgotten
 * when its lease is over, as the controller forgets it then, too; and where there are too many, the
 * oldest.
 */
final class UntoldEnds {
  /** Most pipelines; an id has 320 letters at most. */
  static final int MAX = 1024;

  /**
   * A pipeline.
   *
   * @param id as the controller knows it
   * @param untilNanos when its lease is over
   */
  record Ended(String id, long untilNanos) {}

  private final LongSupplier nanoClock;
  private final Map<String, Ended> waiting = new LinkedHashMap<>();

  /**
   * None.
   *
   * @param nanoClock monotonic clock in nanoseconds
   */
  UntoldEnds(LongSupplier nanoClock) {
    this.nanoClock = nanoClock;
  }

  /** One more. */
  synchronized void add(Ended ended) {
    waiting.put(ended.id(), ended);
    if (waiting.size() > MAX) {
      Iterator<Ended> all = waiting.values().iterator();
      all.next();
      all.remove();
    }
  }

  /**
   * Takes the oldest out.
   *
   * @return it, null where there is none whose lease is not over
   */
  synchronized Ended take() {
    long now = nanoClock.getAsLong();
    Iterator<Ended> all = waiting.values().iterator();
    while (all.hasNext()) {
      Ended oldest = all.next();
      all.remove();
      if (oldest.untilNanos() - now > 0) {
        return oldest;
      }
    }
    return null;
  }

  synchronized boolean isEmpty() {
    return waiting.isEmpty();
  }
}

package io.trunkline.hadoop.ucx;

import java.io.Closeable;
import java.io.IOException;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.Map;

/** Halves of data connections that wait for their other half; so many, and for so long. */
final class Halves<H extends Closeable> {
  private record Waiting<H>(H half, long sinceNanos) {}

  private final Map<StreamName, Waiting<H>> oldestFirst = new LinkedHashMap<>();
  private final int most;
  private final long mostNanos;

  Halves(int most, long mostNanos) {
    this.most = most;
    this.mostNanos = mostNanos;
  }

  /** Has one wait; one too many, or one of a name that waits already, is closed. */
  void add(StreamName name, H half, long nowNanos) {
    expire(nowNanos);
    if (oldestFirst.size() >= most || oldestFirst.containsKey(name)) {
      close(half);
    } else {
      oldestFirst.put(name, new Waiting<>(half, nowNanos));
    }
  }

  /** Takes the one of a name; null when it is not here. */
  H take(StreamName name) {
    Waiting<H> waiting = oldestFirst.remove(name);
    return waiting == null ? null : waiting.half();
  }

  /** Closes those that have waited for too long. */
  void expire(long nowNanos) {
    for (Iterator<Waiting<H>> all = oldestFirst.values().iterator(); all.hasNext(); ) {
      Waiting<H> waiting = all.next();
      if (nowNanos - waiting.sinceNanos() < mostNanos) {
        return;
      }
      all.remove();
      close(waiting.half());
    }
  }

  void closeAll() {
    oldestFirst.values().forEach(waiting -> close(waiting.half()));
    oldestFirst.clear();
  }

  int size() {
    return oldestFirst.size();
  }

  static void close(Closeable half) {
    try {
      half.close();
    } catch (IOException e) {
      Connections.LOG.debug("half a connection not closed", e);
    }
  }
}

package io.trunkline.hadoop.ndn.datanode;

import java.util.concurrent.atomic.AtomicLong;

/**
 * The bound for what DataNodes of this JVM keep of control connections that they read ahead. Each
 * of them gets half of what the others have left at most, as in switches with shared buffers
 * (Choudhury and Hahne, "Dynamic queue length thresholds"): however many take all that they can,
 * there is room for the next one.
 */
final class ReadAhead implements AutoCloseable {
  /** Of one connection: more than HDFS leaves unacknowledged, unless it was told to. */
  static final long MAX_BYTES = 16L << 20;

  /** Of all of them. */
  static final long MAX_BYTES_IN_ALL = 256L << 20;

  private static final AtomicLong IN_ALL = new AtomicLong();

  private long held;
  private boolean closed;

  /** Takes so many bytes, or none and returns false. */
  synchronized boolean take(long bytes) {
    if (closed || held + bytes > MAX_BYTES) {
      return false;
    }
    long others = IN_ALL.getAndAdd(bytes) - held;
    if (held + bytes > (MAX_BYTES_IN_ALL - others) / 2) {
      IN_ALL.addAndGet(-bytes);
      return false;
    }
    held += bytes;
    return true;
  }

  /** Gives back bytes that were taken. */
  synchronized void give(long bytes) {
    if (!closed) {
      held -= bytes;
      IN_ALL.addAndGet(-bytes);
    }
  }

  /** Gives back all. */
  @Override
  public synchronized void close() {
    closed = true;
    IN_ALL.addAndGet(-held);
    held = 0;
  }

  /** Held by this JVM now. */
  static long inAll() {
    return IN_ALL.get();
  }
}

package io.trunkline.hadoop.ucx;

import java.io.IOException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;

/**
 * Waits for one operation of a TCP channel that does not block, with a selector of its own: one
 * that is kept costs a single call of the system for each wait. There is none before the first.
 */
final class TcpWait implements AutoCloseable {
  private static final long NANOS_PER_MS = TimeUnit.MILLISECONDS.toNanos(1);

  private final SocketChannel tcp;
  private final int operation;
  private Selector selector;
  private boolean closed;

  TcpWait(SocketChannel tcp, int operation) {
    this.tcp = tcp;
    this.operation = operation;
  }

  private synchronized Selector selector() throws IOException {
    if (closed) {
      throw new ClosedChannelException();
    }
    if (selector == null) {
      selector = Selector.open();
      tcp.register(selector, operation);
    }
    return selector;
  }

  /**
   * Waits.
   *
   * @return false when the deadline has passed, or the thread was interrupted
   */
  boolean await(long deadlineNanos) throws IOException {
    Selector mine = selector();
    long left = 0;
    if (deadlineNanos != IoWorker.NO_DEADLINE) {
      left = deadlineNanos - System.nanoTime();
      if (left <= 0) {
        return false;
      }
    }
    try {
      int ready = mine.select((left + NANOS_PER_MS - 1) / NANOS_PER_MS);
      mine.selectedKeys().clear();
      return ready > 0 || !mine.isOpen();
    } catch (ClosedSelectorException e) {
      return true;
    }
  }

  /** Ends the wait. */
  @Override
  public void close() throws IOException {
    Selector mine;
    synchronized (this) {
      closed = true;
      mine = selector;
    }
    if (mine != null) {
      mine.close();
    }
  }
}

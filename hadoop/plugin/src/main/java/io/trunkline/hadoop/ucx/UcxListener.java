package io.trunkline.hadoop.ucx;

import java.io.Closeable;
import java.io.IOException;
import java.net.BindException;
import java.net.InetSocketAddress;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.ClosedChannelException;
import java.util.ArrayDeque;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicInteger;
import org.openucx.jucx.UcxException;
import org.openucx.jucx.ucp.UcpConnectionRequest;
import org.openucx.jucx.ucp.UcpListener;
import org.openucx.jucx.ucp.UcpListenerParams;

/** Where peers connect to; gives out the streams that they open. */
public final class UcxListener implements Closeable {
  private final UcxNode node;
  private final Connections listening;
  private final int backlog;
  private final Waiters changed = new Waiters();
  private final ArrayDeque<StreamEnd> acceptQueue = new ArrayDeque<>();
  private final AtomicInteger accepted = new AtomicInteger();
  private UcpListener listener;
  private volatile InetSocketAddress address;
  private volatile boolean closed;

  private UcxListener(UcxNode node, Connections listening, int backlog) {
    this.node = node;
    this.listening = listening;
    this.backlog = backlog;
  }

  static UcxListener open(
      UcxNode node, Connections listening, InetSocketAddress address, int backlog)
      throws IOException {
    UcxListener made = new UcxListener(node, listening, backlog);
    FutureTask<Void> task =
        new FutureTask<>(
            () -> {
              made.listen(address);
              return null;
            });
    listening.worker().execute(task);
    try {
      task.get();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      made.close();
      throw new ClosedByInterruptException();
    } catch (ExecutionException e) {
      BindException failed =
          new BindException("UCX cannot listen on " + address + ": " + e.getCause().getMessage());
      failed.initCause(e.getCause());
      throw failed;
    }
    return made;
  }

  private void listen(InetSocketAddress where) {
    UcpListenerParams params =
        new UcpListenerParams().setSockAddr(where).setConnectionHandler(this::onRequest);
    listener = listening.ucp().newListener(params);
    address = listener.getAddress();
  }

  /** Somebody wants a connection. Called within UCX, so nothing may be thrown. */
  private void onRequest(UcpConnectionRequest request) {
    try {
      Connections taker = node.forAccepting(accepted.getAndIncrement() & Integer.MAX_VALUE);
      listening
          .worker()
          .later(
              () -> {
                if (closed || node.full()) {
                  request.reject();
                } else {
                  taker.worker().execute(() -> taker.accept(this, request));
                }
              });
    } catch (RuntimeException e) {
      Connections.LOG.warn("UCX: connection request failed: {}", e.toString());
    }
  }

  /** Where it listens. */
  public InetSocketAddress address() {
    return address;
  }

  /**
   * A peer has opened a stream.
   *
   * @return 0, or the reason why it is refused
   */
  int offer(StreamEnd stream) {
    synchronized (acceptQueue) {
      if (closed) {
        return Frame.NOT_LISTENING;
      }
      if (acceptQueue.size() >= backlog) {
        return Frame.BACKLOG_FULL;
      }
      acceptQueue.add(stream);
    }
    changed.tell();
    return 0;
  }

  private boolean ready() {
    synchronized (acceptQueue) {
      return closed || !acceptQueue.isEmpty();
    }
  }

  /**
   * The next stream that a peer has opened.
   *
   * @param timeoutMs how long to wait, 0 for ever
   * @throws java.net.SocketTimeoutException when none came
   * @throws ClosedChannelException when the listener is closed
   */
  public UcxChannel accept(int timeoutMs) throws IOException {
    long deadline = UcxNode.deadline(timeoutMs);
    for (; ; ) {
      synchronized (acceptQueue) {
        StreamEnd stream = acceptQueue.poll();
        if (stream != null) {
          return UcxChannel.of(stream);
        }
        if (closed) {
          throw new ClosedChannelException();
        }
      }
      if (!changed.await(listening.worker(), this::ready, deadline)) {
        throw UcxNode.timeout("no stream to " + address + " in " + timeoutMs + " ms");
      }
    }
  }

  /**
   * Takes no more; streams that were accepted go on, others are reset.
   *
   * <p>UCX's own listener stays a while longer, mostly until its worker ends, and rejects: a
   * connection that UCX has taken and whose peer has not introduced itself yet would be told to a
   * listener that is freed (https://github.com/openucx/ucx/issues/11087), which ends the process.
   */
  @Override
  public void close() {
    ArrayDeque<StreamEnd> left;
    synchronized (acceptQueue) {
      if (closed) {
        return;
      }
      closed = true;
      left = new ArrayDeque<>(acceptQueue);
      acceptQueue.clear();
    }
    left.forEach(StreamEnd::reset);
    node.closed(this);
    changed.tell();
  }

  /** Whether it is of this worker. */
  boolean isOn(Connections connections) {
    return listening == connections;
  }

  void destroyLater() {
    listening.worker().execute(this::destroy);
  }

  /** Frees what UCX has of it; by its worker, and best right before that ends. */
  void destroy() {
    if (listener == null) {
      return;
    }
    try {
      listener.close();
    } catch (UcxException e) {
      Connections.LOG.debug("UCX listener {}: {}", address, e.toString());
    }
    listener = null;
  }
}

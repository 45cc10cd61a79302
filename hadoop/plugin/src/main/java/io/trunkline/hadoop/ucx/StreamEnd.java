package io.trunkline.hadoop.ucx;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.FileChannel;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArraySet;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.ReentrantLock;
import org.openucx.jucx.ucp.UcpAmData;
import org.openucx.jucx.ucp.UcpRequest;

/**
 * This side of a stream.
 *
 * <pre>
 *   OPENING --ACCEPT--> OPEN --close--> CLOSING --all sent--> GONE
 *      |                  |                |
 *      +---REFUSE, RESET, the connection fails, reset---> GONE (with a failure)
 * </pre>
 */
final class StreamEnd {
  /** How far it is. */
  enum State {
    OPENING,
    OPEN,
    CLOSING,
    GONE
  }

  final int id;
  final Connection connection;

  private final Connections connections;
  private final SendSide out;
  private final ReceiveSide in;
  private final ReentrantLock reading = new ReentrantLock();
  private final ReentrantLock writing = new ReentrantLock();
  private final Set<Waiter> waiters = new CopyOnWriteArraySet<>();
  private final AtomicBoolean due = new AtomicBoolean();
  private final Waiter buffersFree =
      new Waiter() {
        @Override
        boolean ready() {
          return true;
        }

        @Override
        void wake() {
          out.buffersFree();
          due();
          tell();
          connections.worker().wake();
        }
      };

  private Runnable decision;
  private boolean counts = true;
  private volatile State state;
  private volatile IOException failure;
  private volatile boolean peerClosed;
  private volatile boolean inputShut;
  private volatile boolean closed;

  /** A reader's deadline has passed, and nothing was read since. */
  private volatile boolean overdue;

  /** The connection failed under it, or the peer broke the rules. */
  private volatile boolean lost;

  private volatile boolean heard;

  private volatile long progressNanos = System.nanoTime();

  StreamEnd(int id, Connection connection, State state, Connections connections) {
    this.id = id;
    this.connection = connection;
    this.connections = connections;
    this.state = state;
    out =
        new SendSide(
            this,
            connections.pool(),
            connections.counters(),
            connection.peerMessageBytes(),
            connections.rendezvousBytes(),
            connection.peerWindowBytes());
    in =
        new ReceiveSide(
            this, connections.pool(), connections.messageBytes(), connections.windowBytes());
  }

  State state() {
    return state;
  }

  IOException failure() {
    return failure;
  }

  // ---- users

  /**
   * Reads what is here.
   *
   * @return bytes, 0 when none are here, -1 at the end
   * @throws IOException when the stream has failed and all that came is read
   */
  int read(ByteBuffer to) throws IOException {
    reading.lock();
    try {
      if (closed) {
        throw new ClosedChannelException();
      }
      if (inputShut) {
        return -1;
      }
      if (!to.hasRemaining()) {
        return 0;
      }
      int count = in.take(to);
      if (count == 0 && failure != null) {
        throw new IOException(failure.getMessage(), failure);
      }
      if (count > 0) {
        heard = true;
        overdue = false;
        connections.counters().bytesReceived.add(count);
      }
      return count;
    } finally {
      reading.unlock();
      work();
    }
  }

  /**
   * Takes bytes to send as far as that goes without waiting.
   *
   * @return bytes taken
   * @throws IOException when nobody will read them
   */
  int write(ByteBuffer from) throws IOException {
    return write(() -> out.put(from));
  }

  @FunctionalInterface
  private interface Put {
    int put() throws IOException;
  }

  private int write(Put what) throws IOException {
    writing.lock();
    try {
      if (closed || out.finished()) {
        throw new ClosedChannelException();
      }
      // In the words of sockets: a DataNode that serves a block takes any others for a bad disk.
      if (failure != null) {
        throw new IOException("Connection reset: " + failure.getMessage(), failure);
      }
      if (peerClosed) {
        throw new IOException("Broken pipe: closed by the peer " + connection.remote());
      }
      int taken = what.put();
      if (taken == 0 && overdue && !out.ready()) {
        throw new IOException(
            "Connection reset: " + connection.remote() + " neither answers in time nor takes more");
      }
      return taken;
    } finally {
      writing.unlock();
      work();
    }
  }

  /**
   * Takes bytes of a file to send, as {@link #write(ByteBuffer)}.
   *
   * @return bytes taken
   * @throws EOFException when the file has ended
   */
  int write(FileChannel file, long position, int count) throws IOException {
    return write(() -> out.put(file, position, count));
  }

  int windowBytes() {
    return (int) Math.min(Integer.MAX_VALUE, connections.windowBytes());
  }

  /** Has the worker do what became due, by this thread if nobody leads. */
  private void work() {
    if (due.get()) {
      connections.worker().poke();
    }
  }

  boolean readable() {
    return closed || inputShut || failure != null || in.ready();
  }

  boolean writable() {
    return closed || peerClosed || overdue || failure != null || out.ready();
  }

  /**
   * A reader has waited as long as it may. Stock code gives the connection up then, but often in
   * the thread that writes, which TCP's large buffers would not have stopped: a write that would
   * have to wait fails from now on.
   */
  void overdue() {
    overdue = true;
    tell();
  }

  /** The peer has answered its reader in another way. */
  void heard() {
    heard = true;
    overdue = false;
  }

  /**
   * Waits.
   *
   * @return false when the deadline has passed, or the thread was interrupted
   */
  boolean await(Waiter waiter, boolean forReading, long deadlineNanos) {
    watch(waiter, forReading);
    try {
      return connections.worker().await(waiter, deadlineNanos);
    } finally {
      unwatch(waiter, forReading);
    }
  }

  /** Tells the waiter of whatever happens to the stream from now on. */
  void watch(Waiter waiter, boolean forReading) {
    waiters.add(waiter);
    if (forReading && in.waits(true)) {
      due();
      work();
    }
  }

  void unwatch(Waiter waiter, boolean forReading) {
    waiters.remove(waiter);
    if (forReading) {
      in.waits(false);
    }
  }

  IoWorker worker() {
    return connections.worker();
  }

  void shutdownOutput() {
    out.finish();
    work();
  }

  void shutdownInput() {
    inputShut = true;
    connections.worker().execute(in::drop);
    tell();
  }

  /** What was written goes out in the background; what comes is dropped. */
  void close() {
    if (closed) {
      return;
    }
    closed = true;
    connections
        .worker()
        .execute(
            () -> {
              in.drop();
              progressNanos = System.nanoTime();
              if (state != State.GONE) {
                state = State.CLOSING;
                countNoMore();
              }
              out.finish();
            });
    tell();
  }

  /** Gives the stream up; the peer is told. */
  void reset() {
    closed = true;
    connections
        .worker()
        .execute(
            () -> {
              if (state != State.GONE) {
                control(Frame.RESET, 0);
                in.drop();
                gone(new IOException("connection reset"));
              }
            });
    tell();
  }

  boolean closed() {
    return closed;
  }

  /** How it has served whoever used it, as far as can be told by now. */
  Service service() {
    if (overdue) {
      return Service.SILENT;
    }
    if (lost) {
      return Service.LOST;
    }
    return heard && failure == null ? Service.CARRIED : Service.UNKNOWN;
  }

  // ---- the leader

  /**
   * A frame for this stream.
   *
   * @return whether UCX keeps the message's data for us
   * @throws IOException when the peer breaks the rules
   */
  int onFrame(Frame frame, UcpAmData message) throws IOException {
    progressNanos = System.nanoTime();
    switch (frame.type()) {
      case Frame.DATA -> {
        return in.onData(frame, message);
      }
      case Frame.CREDIT -> out.onCredit(frame.sequence(), connection.peerWindowBytes());
      case Frame.FIN -> in.onEnd(frame.sequence());
      case Frame.CLOSE -> {
        in.onEnd(frame.sequence());
        peerClosed = true;
        out.drop();
        due();
        tell();
      }
      case Frame.ACCEPT -> {
        if (state != State.OPENING) {
          throw new IOException("accepted twice");
        }
        state = State.OPEN;
        decided();
      }
      case Frame.REFUSE -> {
        if (state != State.OPENING) {
          throw new IOException("refused after it was accepted");
        }
        connections.counters().streamsRefused.increment();
        gone(new StreamRefusedException(Frame.refusal(frame.detail())));
      }
      case Frame.RESET -> {
        in.drop();
        gone(new IOException("connection reset by the peer " + connection.remote()));
      }
      default -> throw new IOException("frame of type " + frame.type());
    }
    return Connections.DONE;
  }

  /**
   * No byte goes either way any more.
   *
   * @param orderly whether a side ends in order; if not, the peer broke the rules, or the
   *     connection failed
   */
  void fail(IOException cause, boolean orderly) {
    if (!orderly && state != State.GONE) {
      lost = true;
    }
    in.cut();
    gone(cause);
  }

  private void gone(IOException cause) {
    if (state == State.GONE) {
      return;
    }
    if (failure == null) {
      failure = cause;
    }
    if (state == State.OPENING) {
      in.drop(); // nobody got a stream to read it from
    }
    state = State.GONE;
    out.drop();
    connection.removed(this);
    decided();
    tell();
  }

  /**
   * Does what is due.
   *
   * @return how much was done
   */
  int run() {
    due.set(false);
    if (state == State.OPENING || state == State.GONE) {
      return 0;
    }
    int done = in.run() + out.run();
    if (state == State.CLOSING && out.done()) {
      state = State.GONE;
      connection.removed(this);
    }
    return done;
  }

  /**
   * Looks which transfers are done.
   *
   * @return how many
   */
  int reap() {
    int done = in.reap() + out.reap();
    if (done > 0) {
      progressNanos = System.nanoTime();
      if (state == State.CLOSING) {
        due();
      }
    }
    return done;
  }

  /** Whether {@link #reap} would find any, or none is left. */
  boolean transferred() {
    return in.transferred() || out.transferred() || !transferring();
  }

  boolean transferring() {
    return in.transferring() || out.transferring();
  }

  /** Nobody uses it any more: it counts among its worker's streams no longer. */
  void countNoMore() {
    if (counts) {
      counts = false;
      connections.counted(-1);
    }
  }

  /** Runs something when the peer has accepted or refused, or cannot any more. */
  void onDecision(Runnable what) {
    decision = what;
  }

  private void decided() {
    Runnable what = decision;
    decision = null;
    if (what != null) {
      what.run();
    }
  }

  /** Nobody waits for the peer's answer any more. Any thread. */
  void abandon() {
    closed = true;
    connections
        .worker()
        .execute(
            () -> {
              if (state != State.GONE) {
                control(Frame.RESET, 0);
                gone(new IOException("given up"));
              }
            });
  }

  /** Since when nothing has happened to it. */
  long progressNanos() {
    return progressNanos;
  }

  // ---- the two sides

  /** There is something to do for the leader. */
  void due() {
    if (due.compareAndSet(false, true)) {
      connections.due(this);
    }
  }

  /** Something has changed that somebody may wait for. */
  void tell() {
    for (Waiter waiter : waiters) {
      if (waiter.ready()) {
        waiter.wake();
      }
    }
  }

  void tellWhenBuffersFree() {
    connections.pool().tellWhenFree(buffersFree);
  }

  void control(int type, long sequence) {
    connection.control(type, 0, id, sequence);
  }

  UcpRequest send(PooledBuffer buffer, long sequence, int length, boolean rendezvous) {
    return connection.send(buffer, id, sequence, length, rendezvous);
  }

  UcpRequest receive(long descriptor, PooledBuffer buffer, int length) {
    return connection.receive(descriptor, buffer, length);
  }

  void refuse(long descriptor) {
    connections.refuse(descriptor);
  }

  void transfers() {
    connections.transfers(this);
  }

  void transferFailed(String what) {
    if (state != State.GONE) {
      connection.failLater(
          new IOException("connection to " + connection.remote() + " lost in " + what));
    }
  }

  @Override
  public String toString() {
    return connection + "#" + id;
  }
}

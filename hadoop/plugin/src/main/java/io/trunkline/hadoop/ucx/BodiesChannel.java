package io.trunkline.hadoop.ucx;

import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketOption;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.FileChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A data connection by TCP, the large bodies of which go by a UCX stream that belongs to it: small
 * messages are sooner there by TCP, large ones cost less by UCX. {@link Records} on the TCP
 * connection keep the order.
 *
 * <p>It ends as its TCP connection does. Where one of the two fails, both are closed; where the
 * peer takes no more, what it has written can still be read.
 */
public final class BodiesChannel extends TimedChannel {
  private final SocketChannel tcp;
  private final UcxChannel ucx;
  private final InetSocketAddress remote;
  private final InetSocketAddress local;
  private final RecordsIn in;
  private final RecordsOut out;
  private final ReentrantLock reading = new ReentrantLock();
  private final ReentrantLock writing = new ReentrantLock();
  private final TcpWait readable;
  private final TcpWait writable;
  private volatile boolean inputShut;

  /**
   * A channel over both.
   *
   * @param tcp connected; it is put into non-blocking mode, and closed with the channel
   * @param ucx closed with the channel
   * @param smallBytes writes below go by TCP
   * @throws IOException when a connection has gone already
   */
  BodiesChannel(SocketChannel tcp, UcxChannel ucx, int smallBytes) throws IOException {
    super(BodiesSelectorProvider.INSTANCE);
    this.tcp = tcp;
    this.ucx = ucx;
    tcp.configureBlocking(false);
    tcp.setOption(StandardSocketOptions.TCP_NODELAY, true);
    ucx.configureBlocking(false);
    remote = (InetSocketAddress) tcp.getRemoteAddress();
    local = (InetSocketAddress) tcp.getLocalAddress();
    StreamEnd stream = ucx.stream();
    in = new RecordsIn(tcp::read, stream::read);
    out = new RecordsOut(tcp::write, stream::write, stream::write, smallBytes);
    readable = new TcpWait(tcp, SelectionKey.OP_READ);
    writable = new TcpWait(tcp, SelectionKey.OP_WRITE);
  }

  /**
   * A channel to a {@link BodiesListener}, which is told on the TCP connection which stream belongs
   * to it. Nobody waits for its answer.
   *
   * @param tcp connected to the listener's TCP port, in blocking mode
   * @param ucx connected to the listener's UCX port
   * @param smallBytes writes below go by TCP
   * @throws IOException when a connection has gone already; the caller closes both
   */
  public static BodiesChannel connected(SocketChannel tcp, UcxChannel ucx, int smallBytes)
      throws IOException {
    tcp.setOption(StandardSocketOptions.TCP_NODELAY, true);
    ByteBuffer name = ucx.name().encode();
    while (name.hasRemaining()) {
      tcp.write(name);
    }
    return new BodiesChannel(tcp, ucx, smallBytes);
  }

  SocketChannel tcp() {
    return tcp;
  }

  UcxChannel ucx() {
    return ucx;
  }

  /** Whether an operation waits for UCX now, and not for TCP. */
  boolean waitsForUcx(int operation) {
    boolean reads = operation == SelectionKey.OP_READ;
    ReentrantLock lock = reads ? reading : writing;
    lock.lock();
    try {
      return reads ? in.waitsForUcx() : out.waitsForUcx();
    } finally {
      lock.unlock();
    }
  }

  /** Whether a read needs neither of the two. */
  boolean pending() {
    reading.lock();
    try {
      return inputShut || in.pending();
    } finally {
      reading.unlock();
    }
  }

  /** A reader has waited as long as it may. */
  void overdue() {
    ucx.stream().overdue();
  }

  // ---- moving bytes

  /** One attempt to move bytes; 0 when it has to wait. */
  @FunctionalInterface
  private interface Step {
    int move() throws IOException;
  }

  private int move(boolean reads, Step step) throws IOException {
    checkOpen();
    if (reads && inputShut) {
      return -1;
    }
    try {
      int moved = step.move();
      if (reads && moved > 0) {
        ucx.stream().heard();
      }
      return moved;
    } catch (IOException e) {
      if (reads && inputShut) {
        return -1;
      }
      throw failed(reads, e);
    }
  }

  private IOException failed(boolean reads, IOException cause) {
    if (!isOpen()) {
      return new AsynchronousCloseException();
    }
    if (cause instanceof ClosedChannelException || cause instanceof EOFException) {
      return cause; // written after its end, or a file that is too short
    }
    try {
      if (reads || ucx.peerGone()) {
        close();
      } else {
        shutdownOutput();
      }
    } catch (IOException e) {
      cause.addSuppressed(e);
    }
    return cause;
  }

  /** Waits for what the next attempt needs; false when the deadline has passed, or interrupted. */
  private boolean await(boolean reads, long deadlineNanos) throws IOException {
    boolean byUcx = reads ? in.waitsForUcx() : out.waitsForUcx();
    try {
      return byUcx
          ? ucx.await(reads, deadlineNanos)
          : (reads ? readable : writable).await(deadlineNanos);
    } catch (ClosedChannelException e) {
      throw failed(reads, e);
    }
  }

  private int blocking(boolean reads, Step step, long timeoutMs) throws IOException {
    long deadline = UcxNode.deadline(timeoutMs);
    for (; ; ) {
      int moved = move(reads, step);
      if (moved != 0) {
        return moved;
      }
      if (!await(reads, deadline)) {
        if (Thread.currentThread().isInterrupted()) {
          close();
          throw new ClosedByInterruptException();
        }
        if (reads) {
          overdue();
        }
        throw UcxNode.timeout(
            this + (reads ? ": nothing to read in time" : ": not written in time"));
      }
      if (!isOpen()) {
        throw new AsynchronousCloseException();
      }
    }
  }

  /** An attempt in non-blocking mode. */
  private int attempt(boolean reads, Step step) throws IOException {
    int moved = move(reads, step);
    long nanos = shortWaitNanos();
    if (moved != 0 || nanos == 0) {
      return moved;
    }
    long deadline = System.nanoTime() + nanos;
    while (moved == 0 && await(reads, deadline)) {
      moved = move(reads, step);
    }
    return moved;
  }

  @Override
  public int read(ByteBuffer to) throws IOException {
    if (isBlocking()) {
      return read(to, 0);
    }
    checkOpen();
    reading.lock();
    try {
      return to.hasRemaining() ? attempt(true, () -> in.read(to)) : 0;
    } finally {
      reading.unlock();
    }
  }

  @Override
  public int read(ByteBuffer to, long timeoutMs) throws IOException {
    checkOpen();
    reading.lock();
    try {
      return to.hasRemaining() ? blocking(true, () -> in.read(to), timeoutMs) : 0;
    } finally {
      reading.unlock();
    }
  }

  @Override
  public long read(ByteBuffer[] to, int offset, int length) throws IOException {
    for (int i = offset; i < offset + length; i++) {
      if (to[i].hasRemaining()) {
        return read(to[i]);
      }
    }
    return 0;
  }

  @Override
  public int write(ByteBuffer from) throws IOException {
    if (isBlocking()) {
      return write(from, 0);
    }
    checkOpen();
    seen(from);
    writing.lock();
    try {
      return from.hasRemaining() ? attempt(false, () -> out.write(from)) : 0;
    } finally {
      writing.unlock();
    }
  }

  @Override
  public int write(ByteBuffer from, long timeoutMs) throws IOException {
    checkOpen();
    seen(from);
    int start = from.position();
    writing.lock();
    try {
      while (from.hasRemaining()) {
        blocking(false, () -> out.write(from), timeoutMs);
      }
    } finally {
      writing.unlock();
    }
    return from.position() - start;
  }

  /** What goes by UCX is read straight into registered memory. */
  @Override
  public void transferFrom(FileChannel file, long position, int count, long timeoutMs)
      throws IOException {
    checkOpen();
    writing.lock();
    try {
      for (int sent = 0; sent < count; ) {
        long next = position + sent;
        int left = count - sent;
        sent += blocking(false, () -> out.write(file, next, left), timeoutMs);
      }
    } finally {
      writing.unlock();
    }
  }

  // ---- the rest

  @Override
  protected void implCloseSelectableChannel() throws IOException {
    try {
      ucx.close();
      readable.close();
      writable.close();
    } finally {
      tcp.close();
    }
  }

  @Override
  public SocketChannel shutdownInput() throws IOException {
    checkOpen();
    inputShut = true;
    ucx.shutdownInput();
    tcp.shutdownInput();
    return this;
  }

  @Override
  public SocketChannel shutdownOutput() throws IOException {
    checkOpen();
    ucx.shutdownOutput();
    tcp.shutdownOutput();
    return this;
  }

  @Override
  int windowBytes() {
    return ucx.windowBytes();
  }

  @Override
  public InetSocketAddress getRemoteAddress() {
    return remote;
  }

  @Override
  public InetSocketAddress getLocalAddress() {
    return local;
  }

  @Override
  public <T> SocketChannel setOption(SocketOption<T> name, T value) throws IOException {
    tcp.setOption(name, value);
    return this;
  }

  @Override
  public <T> T getOption(SocketOption<T> name) throws IOException {
    return tcp.getOption(name);
  }

  @Override
  public Set<SocketOption<?>> supportedOptions() {
    return tcp.supportedOptions();
  }

  @Override
  public String toString() {
    return "BodiesChannel[" + local + " to " + remote + ", " + ucx + "]";
  }
}

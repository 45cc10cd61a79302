package io.trunkline.hadoop.tap;

import io.trunkline.hadoop.library.ShortWait;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketOption;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.channels.WritableByteChannel;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * A data-transfer connection as stock code sees it: a real channel with a {@link Tap} where stock
 * code writes and reads. It blocks, times out and is selected as the real channel is.
 *
 * <p>What goes out in place of a packet counts as sent only when it has gone out whole. When the
 * connection takes but a part, the packet's last byte is left with the caller, who comes back with
 * it once the connection takes more; so HDFS's own write timeout goes on working.
 */
public final class TapChannel extends SocketChannel {
  /** How long the connection may take nothing of what a listener sends before it is given up. */
  private static final long STALL_MS = 60_000;

  /** Room for what is read at once of answers: some dozens of them. */
  private static final int AHEAD_BYTES = 2048;

  private volatile SocketChannel real;
  private volatile TapWire wire;
  private final Tap tap;
  private final TapOutput out;
  private final ShortWait shortWait = new ShortWait();
  private final Object writeLock = new Object();
  private final Socket owner;

  /** The connection as what is due goes out on it. */
  private final WritableByteChannel sink =
      new WritableByteChannel() {
        @Override
        public int write(ByteBuffer from) throws IOException {
          return wire.write(from, real);
        }

        @Override
        public boolean isOpen() {
          return real.isOpen();
        }

        @Override
        public void close() throws IOException {
          TapChannel.this.close();
        }
      };

  /** Whether the byte that the caller will come back with was taken already. */
  private boolean lastByteTaken;

  /** What was read ahead, while {@link #pending}; only whoever reads touches it. */
  private ByteBuffer ahead;

  /** Whether the last read took all that had come: the next one waits before it looks. */
  private boolean drained;

  /** Whether {@link #ahead} has bytes that stock code has not read yet. */
  private volatile boolean pending;

  /**
   * A channel.
   *
   * @param owner what {@link #socket} answers
   * @param real the connection
   * @param listener decides what becomes of it
   */
  public TapChannel(Socket owner, SocketChannel real, TapListener listener) {
    this(owner, real, TapWire.PLAIN, listener);
  }

  /**
   * A channel.
   *
   * @param owner what {@link #socket} answers
   * @param real the connection
   * @param wire the form in which all goes over it; closed with the channel
   * @param listener decides what becomes of it
   */
  public TapChannel(Socket owner, SocketChannel real, TapWire wire, TapListener listener) {
    super(TapSelectorProvider.INSTANCE);
    this.owner = owner;
    this.real = real;
    this.wire = wire;
    this.tap = new Tap(listener, new Connection());
    this.out = tap.output();
  }

  SocketChannel real() {
    return real;
  }

  @Override
  public int write(ByteBuffer from) throws IOException {
    synchronized (writeLock) {
      int start = from.position();
      if (!out.drainTo(sink)) {
        return 0;
      }
      tap.sent();
      if (lastByteTaken && from.hasRemaining()) {
        from.get();
        lastByteTaken = false;
      }
      while (from.hasRemaining()) {
        if (tap.passing() > 0) {
          if (!pass(from)) {
            break;
          }
          continue;
        }
        tap.accept(from);
        if (!out.drainTo(sink)) {
          from.position(from.position() - 1);
          lastByteTaken = true;
          break;
        }
        tap.sent();
      }
      return from.position() - start;
    }
  }

  /** Sends what is to pass as it is; returns false when the connection took but a part. */
  private boolean pass(ByteBuffer from) throws IOException {
    int limit = from.limit();
    int most = (int) Math.min(from.remaining(), tap.passing());
    int count;
    from.limit(from.position() + most);
    try {
      count = sink.write(from);
    } finally {
      from.limit(limit);
    }
    tap.passed(count);
    return count == most;
  }

  @Override
  public long write(ByteBuffer[] from, int offset, int length) throws IOException {
    long total = 0;
    for (int i = offset; i < offset + length; i++) {
      total += write(from[i]);
      if (from[i].hasRemaining()) {
        break;
      }
    }
    return total;
  }

  /**
   * As the real channel's, but that it waits for a moment. Stock code reads the length of an
   * acknowledgement a byte at a time, so what is read by few bytes is read ahead: neither that nor
   * a frame's head costs a call of its own. Where what came holds nothing for stock code, it reads
   * on: who is told 0 goes to a selector.
   */
  @Override
  public int read(ByteBuffer to) throws IOException {
    if (pending) {
      return give(to);
    }
    boolean waits = to.hasRemaining() && !real.isBlocking();
    while (true) {
      if (waits && drained && !wire.pending()) {
        drained = false;
        waits = false;
        if (!shortWait.readable(real)) {
          return 0;
        }
      }
      boolean few = to.hasRemaining() && to.remaining() < AHEAD_BYTES;
      ByteBuffer into = few ? emptyAhead() : to;
      int start = into.position();
      int count = wire.read(real, into);
      drained = count >= 0 && into.hasRemaining();
      if (count == 0 && waits && !wire.pending()) {
        continue;
      }
      if (count <= 0) {
        return count;
      }
      int stock = tap.answered(into, start, start + count);
      into.position(start + stock);
      if (stock == 0) {
        continue;
      }
      if (into == to) {
        return stock;
      }
      into.flip();
      pending = true;
      return give(to);
    }
  }

  private ByteBuffer emptyAhead() {
    if (ahead == null) {
      ahead = ByteBuffer.allocate(AHEAD_BYTES);
    }
    return ahead.clear();
  }

  /** Gives stock code of what was read ahead. */
  private int give(ByteBuffer to) throws IOException {
    if (!isOpen()) {
      throw new ClosedChannelException();
    }
    int count = Math.min(to.remaining(), ahead.remaining());
    to.put(to.position(), ahead, ahead.position(), count).position(to.position() + count);
    ahead.position(ahead.position() + count);
    pending = ahead.hasRemaining();
    return count;
  }

  /** Whether stock code can read without the connection: no selector may have it wait then. */
  boolean pending() {
    return pending || wire.pending();
  }

  /** What the tap's listener sees of this channel. */
  private final class Connection implements TapConnection {
    @Override
    public InetSocketAddress local() throws IOException {
      return (InetSocketAddress) real.getLocalAddress();
    }

    @Override
    public InetSocketAddress remote() throws IOException {
      return (InetSocketAddress) real.getRemoteAddress();
    }

    /**
     * {@inheritDoc}
     *
     * <p>Stock code asks before it waits for an answer, so nobody reads from the connection that is
     * given up.
     */
    @Override
    public void moveTo(Connector connector) throws IOException {
      real.close();
      wire.close();
      wire = TapWire.PLAIN;
      SocketChannel other = connector.connect();
      other.configureBlocking(isBlocking());
      real = other;
      if (!isOpen()) {
        other.close();
        throw new ClosedChannelException();
      }
    }

    @Override
    public void send(Refill refill) throws IOException {
      boolean more;
      synchronized (writeLock) {
        more = refill.next(out);
      }
      long deadline = deadline();
      while (true) {
        synchronized (writeLock) {
          while (out.drainTo(sink)) {
            if (!more) {
              return;
            }
            more = refill.next(out);
            deadline = deadline();
          }
        }
        if (System.nanoTime() - deadline >= 0) {
          throw new SocketTimeoutException(
              TapChannel.this + ": takes nothing for " + STALL_MS + " ms");
        }
        awaitWritable();
      }
    }
  }

  private static long deadline() {
    return System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(STALL_MS);
  }

  /** Waits until the connection may take more, for a while at most. */
  private void awaitWritable() throws IOException {
    if (real.isBlocking()) {
      return;
    }
    try (Selector selector = real.provider().openSelector()) {
      real.register(selector, SelectionKey.OP_WRITE);
      selector.select(STALL_MS);
    }
    if (Thread.currentThread().isInterrupted()) {
      throw new InterruptedIOException(this + ": interrupted");
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
  protected void implCloseSelectableChannel() throws IOException {
    try {
      real.close();
    } finally {
      wire.close();
      tap.close();
    }
  }

  @Override
  protected void implConfigureBlocking(boolean block) throws IOException {
    real.configureBlocking(block);
  }

  @Override
  public Socket socket() {
    return owner;
  }

  @Override
  public SocketChannel bind(SocketAddress local) throws IOException {
    real.bind(local);
    return this;
  }

  @Override
  public <T> SocketChannel setOption(SocketOption<T> name, T value) throws IOException {
    real.setOption(name, value);
    return this;
  }

  @Override
  public <T> T getOption(SocketOption<T> name) throws IOException {
    return real.getOption(name);
  }

  @Override
  public Set<SocketOption<?>> supportedOptions() {
    return real.supportedOptions();
  }

  @Override
  public SocketChannel shutdownInput() throws IOException {
    real.shutdownInput();
    pending = false;
    return this;
  }

  @Override
  public SocketChannel shutdownOutput() throws IOException {
    real.shutdownOutput();
    return this;
  }

  @Override
  public boolean isConnected() {
    return real.isConnected();
  }

  @Override
  public boolean isConnectionPending() {
    return real.isConnectionPending();
  }

  @Override
  public boolean connect(SocketAddress remote) throws IOException {
    return real.connect(remote);
  }

  @Override
  public boolean finishConnect() throws IOException {
    return real.finishConnect();
  }

  @Override
  public SocketAddress getRemoteAddress() throws IOException {
    return real.getRemoteAddress();
  }

  @Override
  public SocketAddress getLocalAddress() throws IOException {
    return real.getLocalAddress();
  }

  @Override
  public String toString() {
    return "TapChannel[" + real + ", " + tap + "]";
  }
}

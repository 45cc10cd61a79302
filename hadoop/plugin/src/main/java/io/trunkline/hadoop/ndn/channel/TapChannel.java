package io.trunkline.hadoop.ndn.channel;

import io.trunkline.hadoop.ndn.wire.AnswerFrame;
import io.trunkline.hadoop.ndn.wire.ControlRecord;
import io.trunkline.hadoop.ndn.write.ControlBuffer;
import io.trunkline.hadoop.ndn.write.WriteTap;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketOption;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * A connection to a DataNode's plug-in: a real channel with a {@link WriteTap} where stock code
 * writes. It blocks, times out and is selected as the real channel is. Where the tap finds that
 * this is no write by name, the DataNode's stock port takes the plug-in's place before a byte has
 * gone out: a header carries the block token, which is nobody else's to see.
 *
 * <p>A packet counts as sent only when its control record has gone out whole. When the connection
 * takes but a part of a record, the packet's last byte is left with the caller, who comes back with
 * it once the connection takes more; so HDFS's own write timeout goes on working.
 */
public final class TapChannel extends SocketChannel implements WriteTap.Connection {
  /** How long the connection may take nothing of what is sent again before it is given up. */
  private static final long STALL_MS = 60_000;

  /** Connects to the DataNode's stock port instead. */
  @FunctionalInterface
  public interface Stock {
    /**
     * Connects.
     *
     * @return a channel that blocks
     * @throws IOException when it cannot be connected
     */
    SocketChannel connect() throws IOException;
  }

  private volatile SocketChannel real;
  private final WriteTap tap;
  private final Stock stock;
  private final ControlBuffer control = new ControlBuffer();
  private final Object writeLock = new Object();
  private final Socket owner;
  private final AnswerFrame.Reader answers = new AnswerFrame.Reader();

  /** Whether the byte that the caller will come back with was taken already. */
  private boolean lastByteTaken;

  /**
   * A channel.
   *
   * @param owner what {@link #socket} answers
   * @param real the connection
   * @param tap reads along where stock code writes
   * @param stock where everything goes that is no write by name
   */
  public TapChannel(Socket owner, SocketChannel real, WriteTap tap, Stock stock) {
    super(TapSelectorProvider.INSTANCE);
    this.owner = owner;
    this.real = real;
    this.tap = tap;
    this.stock = stock;
    tap.attach(this);
  }

  SocketChannel real() {
    return real;
  }

  @Override
  public int write(ByteBuffer from) throws IOException {
    synchronized (writeLock) {
      int start = from.position();
      if (!control.drainTo(real)) {
        return 0;
      }
      if (lastByteTaken && from.hasRemaining()) {
        from.get();
        lastByteTaken = false;
      }
      while (from.hasRemaining()) {
        if (tap.stock()) {
          real.write(from);
          break;
        }
        tap.accept(from, control);
        if (tap.stock()) {
          goByStock();
        }
        if (!control.drainTo(real)) {
          from.position(from.position() - 1);
          lastByteTaken = true;
          break;
        }
      }
      return from.position() - start;
    }
  }

  /**
   * Leaves the plug-in, to which nothing was sent yet, for the stock port. Stock code asks before
   * it waits for an answer, so nobody reads from the connection that is given up.
   */
  private void goByStock() throws IOException {
    real.close();
    SocketChannel other = stock.connect();
    other.configureBlocking(isBlocking());
    real = other;
    if (!isOpen()) {
      other.close();
      throw new ClosedChannelException();
    }
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

  @Override
  public int read(ByteBuffer to) throws IOException {
    while (true) {
      int start = to.position();
      int count = real.read(to);
      if (count <= 0 || !tap.named()) {
        return count;
      }
      List<Long> asked = new ArrayList<>(0);
      int stock = answers.accept(to, start, to.position(), asked::add);
      to.position(start + stock);
      if (stock > 0) {
        tap.answered(to.duplicate().flip().position(start));
      }
      for (long seqno : asked) {
        if (!tap.asksFurther(seqno)) {
          synchronized (writeLock) {
            tap.asked(seqno);
          }
          push();
        }
      }
      if (stock > 0 || !real.isBlocking()) {
        return stock;
      }
    }
  }

  @Override
  public void send(ControlRecord record, byte[] body) throws IOException {
    synchronized (writeLock) {
      control.put(record, body, 0);
    }
    push();
  }

  /** Sends what is due and what is to be sent again; stock code may write in between. */
  private void push() throws IOException {
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(STALL_MS);
    while (true) {
      synchronized (writeLock) {
        while (control.drainTo(real)) {
          deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(STALL_MS);
          if (!tap.sendAgain(control)) {
            return;
          }
        }
      }
      if (System.nanoTime() - deadline >= 0) {
        throw new SocketTimeoutException(this + ": takes nothing for " + STALL_MS + " ms");
      }
      awaitWritable();
    }
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

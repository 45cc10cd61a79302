package io.trunkline.hadoop.ndn.channel;

import io.trunkline.hadoop.ndn.write.ControlBuffer;
import io.trunkline.hadoop.ndn.write.WriteTap;
import java.io.IOException;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketOption;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.SocketChannel;
import java.util.Set;

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
public final class TapChannel extends SocketChannel {
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
    ByteBuffer read = to.duplicate();
    int count = real.read(to);
    if (count > 0) {
      tap.answered(read.limit(to.position()));
    }
    return count;
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

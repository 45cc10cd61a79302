package io.trunkline.hadoop.ucx;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.AlreadyConnectedException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.FileChannel;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.SelectorProvider;
import java.util.function.Consumer;

/**
 * A data connection as a {@link SocketChannel} that is connected from the start. Blocking mode and
 * selectors work as stock code expects; the forms with a time-out block in either mode.
 */
public abstract class TimedChannel extends SocketChannel {
  private final UcxSocket socket;
  private volatile Consumer<ByteBuffer> firstWrite;
  private volatile long shortWaitNanos;

  TimedChannel(SelectorProvider selectors) throws IOException {
    super(selectors);
    socket = new UcxSocket(this);
  }

  /** Most bytes that it holds unread, for each direction. */
  abstract int windowBytes();

  /**
   * Reads, waiting for at least a byte.
   *
   * @param timeoutMs how long, 0 for ever
   * @return bytes read, -1 at the end
   * @throws java.net.SocketTimeoutException when nothing came
   */
  public abstract int read(ByteBuffer to, long timeoutMs) throws IOException;

  /**
   * Reads into an array, waiting for at least a byte.
   *
   * @param timeoutMs how long, 0 for ever
   * @return bytes read, -1 at the end
   * @throws java.net.SocketTimeoutException when nothing came
   */
  public final int read(byte[] to, int offset, int length, long timeoutMs) throws IOException {
    return read(ByteBuffer.wrap(to, offset, length), timeoutMs);
  }

  /**
   * Writes all.
   *
   * @param timeoutMs how long to wait for the peer to take the next bytes, 0 for ever
   * @return bytes written
   * @throws java.net.SocketTimeoutException when the peer took none; the buffer's position tells
   *     how many went before
   */
  public abstract int write(ByteBuffer from, long timeoutMs) throws IOException;

  /**
   * Writes all of a part of an array.
   *
   * @param timeoutMs how long to wait for the peer to take the next bytes, 0 for ever
   * @throws java.net.SocketTimeoutException when the peer took none
   */
  public final void write(byte[] from, int offset, int length, long timeoutMs) throws IOException {
    write(ByteBuffer.wrap(from, offset, length), timeoutMs);
  }

  @Override
  public final long write(ByteBuffer[] from, int offset, int length) throws IOException {
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
   * Sends a part of a file.
   *
   * @param timeoutMs how long to wait for the peer to take the next bytes, 0 for ever
   * @throws java.io.EOFException when the file ends before
   * @throws java.net.SocketTimeoutException when the peer took none
   */
  public abstract void transferFrom(FileChannel file, long position, int count, long timeoutMs)
      throws IOException;

  /**
   * Has calls in non-blocking mode wait for a short time before they return 0. Stock streams select
   * then, with a selector of a pool, which costs far more than the wait of a millisecond that a
   * stream in flow asks for. Not for a thread that looks after several channels.
   *
   * @param nanos how long, 0 for not at all
   */
  public final void setShortWait(long nanos) {
    shortWaitNanos = nanos;
  }

  final long shortWaitNanos() {
    return shortWaitNanos;
  }

  /**
   * Shows somebody what is written first.
   *
   * @param seen called once, by the first writer, with what is about to be written, read-only
   */
  public final void onFirstWrite(Consumer<ByteBuffer> seen) {
    firstWrite = seen;
  }

  final void seen(ByteBuffer from) {
    Consumer<ByteBuffer> seen = firstWrite;
    if (seen != null && from.hasRemaining()) {
      firstWrite = null;
      seen.accept(from.asReadOnlyBuffer());
    }
  }

  final void checkOpen() throws ClosedChannelException {
    if (!isOpen()) {
      throw new ClosedChannelException();
    }
  }

  @Override
  public final Socket socket() {
    return socket;
  }

  @Override
  public abstract InetSocketAddress getRemoteAddress();

  @Override
  public abstract InetSocketAddress getLocalAddress();

  @Override
  protected final void implConfigureBlocking(boolean block) {
    // Kept by the super class; each call looks there.
  }

  @Override
  public final boolean isConnected() {
    return true;
  }

  @Override
  public final boolean isConnectionPending() {
    return false;
  }

  @Override
  public final boolean connect(SocketAddress remote) {
    throw new AlreadyConnectedException();
  }

  @Override
  public final boolean finishConnect() {
    return true;
  }

  @Override
  public final SocketChannel bind(SocketAddress local) {
    throw new AlreadyConnectedException();
  }
}

package io.trunkline.hadoop.ucx;

import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketOption;
import java.nio.ByteBuffer;
import java.nio.channels.AlreadyConnectedException;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.FileChannel;
import java.nio.channels.SocketChannel;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/**
 * A stream of bytes as a {@link SocketChannel}. It is connected from the start. Blocking mode and
 * selectors work as stock code expects; the forms with a time-out block in either mode.
 */
public final class UcxChannel extends SocketChannel {
  private final StreamEnd stream;
  private final UcxSocket socket;
  private volatile Consumer<ByteBuffer> firstWrite;
  private volatile BiConsumer<Service, String> closing;
  private volatile long shortWaitNanos;

  private UcxChannel(StreamEnd stream) throws IOException {
    super(UcxSelectorProvider.INSTANCE);
    this.stream = stream;
    socket = new UcxSocket(this);
  }

  static UcxChannel of(StreamEnd stream) throws IOException {
    return new UcxChannel(stream);
  }

  StreamEnd stream() {
    return stream;
  }

  /** One wait of a reader or a writer of this channel. */
  private final class Wait extends Waiter {
    private final boolean reads;

    Wait(boolean reads) {
      this.reads = reads;
    }

    @Override
    boolean ready() {
      return reads ? stream.readable() : stream.writable();
    }
  }

  /** One attempt to move bytes; 0 when it has to wait. */
  @FunctionalInterface
  private interface Step {
    int move() throws IOException;
  }

  private int blocking(boolean reads, Step step, long deadlineNanos) throws IOException {
    boolean done = false;
    begin();
    try {
      int moved = step.move();
      while (moved == 0) {
        Wait wait = new Wait(reads);
        if (!stream.await(wait, reads, deadlineNanos) && !Thread.currentThread().isInterrupted()) {
          if (reads) {
            stream.overdue();
          }
          throw UcxNode.timeout(
              stream + (reads ? ": nothing to read in time" : ": not written in time"));
        }
        moved = step.move();
        if (moved == 0 && Thread.currentThread().isInterrupted()) {
          break;
        }
      }
      done = true;
      return moved;
    } catch (ClosedChannelException e) {
      if (isOpen()) {
        throw e;
      }
      throw new AsynchronousCloseException();
    } finally {
      end(done);
    }
  }

  /**
   * Has calls in non-blocking mode wait for a short time before they return 0. Stock streams select
   * then, with a selector of a pool, which costs far more than the wait of a millisecond that a
   * stream in flow asks for. Not for a thread that looks after several channels.
   *
   * @param nanos how long, 0 for not at all
   */
  public void setShortWait(long nanos) {
    shortWaitNanos = nanos;
  }

  /** An attempt in non-blocking mode. */
  private int attempt(boolean reads, ByteBuffer bytes) throws IOException {
    for (long nanos = shortWaitNanos; ; nanos = 0) {
      int moved = reads ? stream.read(bytes) : stream.write(bytes);
      if (moved != 0 || nanos == 0 || !bytes.hasRemaining()) {
        return moved;
      }
      stream.await(new Wait(reads), reads, System.nanoTime() + nanos);
    }
  }

  private void checkOpen() throws ClosedChannelException {
    if (!isOpen()) {
      throw new ClosedChannelException();
    }
  }

  @Override
  public int read(ByteBuffer to) throws IOException {
    return isBlocking() ? read(to, 0) : attempt(true, to);
  }

  /**
   * Reads, waiting for at least a byte.
   *
   * @param timeoutMs how long, 0 for ever
   * @return bytes read, -1 at the end
   * @throws java.net.SocketTimeoutException when nothing came
   */
  public int read(ByteBuffer to, long timeoutMs) throws IOException {
    checkOpen();
    if (!to.hasRemaining()) {
      return 0;
    }
    return blocking(true, () -> stream.read(to), UcxNode.deadline(timeoutMs));
  }

  /**
   * Reads into an array, waiting for at least a byte.
   *
   * @param timeoutMs how long, 0 for ever
   * @return bytes read, -1 at the end
   * @throws java.net.SocketTimeoutException when nothing came
   */
  public int read(byte[] to, int offset, int length, long timeoutMs) throws IOException {
    return read(ByteBuffer.wrap(to, offset, length), timeoutMs);
  }

  @Override
  public long read(ByteBuffer[] to, int offset, int length) throws IOException {
    long total = 0;
    for (int i = offset; i < offset + length; i++) {
      if (!to[i].hasRemaining()) {
        continue;
      }
      int count = total == 0 ? read(to[i]) : stream.read(to[i]);
      if (count < 0) {
        return total == 0 ? -1 : total;
      }
      total += count;
      if (to[i].hasRemaining()) {
        break;
      }
    }
    return total;
  }

  @Override
  public int write(ByteBuffer from) throws IOException {
    if (isBlocking()) {
      return write(from, 0);
    }
    seen(from);
    return attempt(false, from);
  }

  /**
   * Writes all.
   *
   * @param timeoutMs how long to wait for the peer to take the next bytes, 0 for ever
   * @return bytes written
   * @throws java.net.SocketTimeoutException when the peer took none; the buffer's position tells
   *     how many went before
   */
  public int write(ByteBuffer from, long timeoutMs) throws IOException {
    checkOpen();
    seen(from);
    int start = from.position();
    while (from.hasRemaining()) {
      blocking(false, () -> stream.write(from), UcxNode.deadline(timeoutMs));
    }
    return from.position() - start;
  }

  /**
   * Writes all of a part of an array.
   *
   * @param timeoutMs how long to wait for the peer to take the next bytes, 0 for ever
   * @throws java.net.SocketTimeoutException when the peer took none
   */
  public void write(byte[] from, int offset, int length, long timeoutMs) throws IOException {
    write(ByteBuffer.wrap(from, offset, length), timeoutMs);
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
   * Sends a part of a file, read straight into registered memory.
   *
   * @param timeoutMs how long to wait for the peer to take the next bytes, 0 for ever
   * @throws EOFException when the file ends before
   * @throws java.net.SocketTimeoutException when the peer took none
   */
  public void transferFrom(FileChannel file, long position, int count, long timeoutMs)
      throws IOException {
    checkOpen();
    long[] next = {position};
    long end = position + count;
    while (next[0] < end) {
      blocking(
          false,
          () -> {
            int sent = stream.write(file, next[0], (int) (end - next[0]));
            next[0] += sent;
            return sent;
          },
          UcxNode.deadline(timeoutMs));
    }
  }

  /**
   * Shows somebody what is written first.
   *
   * @param seen called once, by the first writer, with what is about to be written, read-only
   */
  public void onFirstWrite(Consumer<ByteBuffer> seen) {
    firstWrite = seen;
  }

  /**
   * Tells somebody how the stream has served, when the channel is closed.
   *
   * @param told called once, with the cause where it did not
   */
  public void onClose(BiConsumer<Service, String> told) {
    closing = told;
  }

  private void seen(ByteBuffer from) {
    Consumer<ByteBuffer> seen = firstWrite;
    if (seen != null && from.hasRemaining()) {
      firstWrite = null;
      seen.accept(from.asReadOnlyBuffer());
    }
  }

  /** Whether the connection to the peer is lost. */
  public boolean peerGone() {
    return stream.failure() != null;
  }

  @Override
  protected void implCloseSelectableChannel() {
    BiConsumer<Service, String> told = closing;
    if (told != null) {
      IOException failure = stream.failure();
      told.accept(stream.service(), failure == null ? "" : failure.getMessage());
    }
    stream.close();
  }

  @Override
  protected void implConfigureBlocking(boolean block) {
    // Kept by the super class; each call looks there.
  }

  @Override
  public Socket socket() {
    return socket;
  }

  @Override
  public SocketChannel shutdownInput() throws IOException {
    checkOpen();
    stream.shutdownInput();
    return this;
  }

  @Override
  public SocketChannel shutdownOutput() throws IOException {
    checkOpen();
    stream.shutdownOutput();
    return this;
  }

  @Override
  public boolean isConnected() {
    return true;
  }

  @Override
  public boolean isConnectionPending() {
    return false;
  }

  @Override
  public boolean connect(SocketAddress remote) {
    throw new AlreadyConnectedException();
  }

  @Override
  public boolean finishConnect() {
    return true;
  }

  @Override
  public SocketChannel bind(SocketAddress local) {
    throw new AlreadyConnectedException();
  }

  @Override
  public InetSocketAddress getRemoteAddress() {
    return stream.connection.remote();
  }

  @Override
  public InetSocketAddress getLocalAddress() {
    return stream.connection.local();
  }

  /** Taken and ignored: what TCP is told does not matter here. */
  @Override
  public <T> SocketChannel setOption(SocketOption<T> name, T value) {
    return this;
  }

  @Override
  public <T> T getOption(SocketOption<T> name) {
    throw new UnsupportedOperationException(name.name());
  }

  @Override
  public Set<SocketOption<?>> supportedOptions() {
    return Set.of();
  }

  @Override
  public String toString() {
    return "UcxChannel[" + stream + "]";
  }
}

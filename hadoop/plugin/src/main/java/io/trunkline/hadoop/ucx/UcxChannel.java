package io.trunkline.hadoop.ucx;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketOption;
import java.nio.ByteBuffer;
import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.FileChannel;
import java.nio.channels.SocketChannel;
import java.util.Set;
import java.util.function.BiConsumer;

/** A stream of bytes over UCX as a channel. */
public final class UcxChannel extends TimedChannel {
  private final StreamEnd stream;
  private volatile BiConsumer<Service, String> closing;

  private UcxChannel(StreamEnd stream) throws IOException {
    super(UcxSelectorProvider.INSTANCE);
    this.stream = stream;
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
        if (!await(reads, deadlineNanos) && !Thread.currentThread().isInterrupted()) {
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
   * Waits until the stream may be read, or written.
   *
   * @return false when the deadline has passed, or the thread was interrupted
   */
  boolean await(boolean reads, long deadlineNanos) {
    return stream.await(new Wait(reads), reads, deadlineNanos);
  }

  /** An attempt in non-blocking mode. */
  private int attempt(boolean reads, ByteBuffer bytes) throws IOException {
    for (long nanos = shortWaitNanos(); ; nanos = 0) {
      int moved = reads ? stream.read(bytes) : stream.write(bytes);
      if (moved != 0 || nanos == 0 || !bytes.hasRemaining()) {
        return moved;
      }
      await(reads, System.nanoTime() + nanos);
    }
  }

  @Override
  public int read(ByteBuffer to) throws IOException {
    return isBlocking() ? read(to, 0) : attempt(true, to);
  }

  @Override
  public int read(ByteBuffer to, long timeoutMs) throws IOException {
    checkOpen();
    if (!to.hasRemaining()) {
      return 0;
    }
    return blocking(true, () -> stream.read(to), UcxNode.deadline(timeoutMs));
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

  @Override
  public int write(ByteBuffer from, long timeoutMs) throws IOException {
    checkOpen();
    seen(from);
    int start = from.position();
    while (from.hasRemaining()) {
      blocking(false, () -> stream.write(from), UcxNode.deadline(timeoutMs));
    }
    return from.position() - start;
  }

  /** The file is read straight into registered memory. */
  @Override
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
   * Tells somebody how the stream has served, when the channel is closed.
   *
   * @param told called once, with the cause where it did not
   */
  public void onClose(BiConsumer<Service, String> told) {
    closing = told;
  }

  /** What both sides know the stream under, and nobody else. */
  StreamName name() {
    return new StreamName(stream.connection.acceptorToken(), stream.id);
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
  int windowBytes() {
    return stream.windowBytes();
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

package io.trunkline.hadoop.ucx;

import java.io.EOFException;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;
import org.openucx.jucx.ucs.UcsConstants;

/**
 * Sending half of a stream. A writer copies into registered buffers, which who calls UCX then hands
 * to it. While a message is on its way, the next one waits and grows until it is full: a writer
 * that is faster than the network gets large messages, one that is slower loses no time.
 */
final class SendSide {
  private final StreamEnd stream;
  private final BufferPool pool;
  private final Counters counters;
  private final int messageBytes;
  private final int rendezvousBytes;

  /** Guards what is being filled. The leader only tries to take it; the writer looks again. */
  private final ReentrantLock staging = new ReentrantLock();

  private PooledBuffer staged;
  private long sealedCost;

  private final Queue<PooledBuffer> sealed = new ConcurrentLinkedQueue<>();

  /** Sealed and not done with. */
  private final AtomicInteger outstanding = new AtomicInteger();

  // Of who calls UCX alone.
  private final ArrayDeque<PooledBuffer> onTheWay = new ArrayDeque<>();
  private long sequence;
  private Ending ending = Ending.NONE_SENT;

  private volatile long grantedCost;
  private volatile long usedCost;
  private volatile boolean starved;
  private volatile boolean finished;
  private volatile boolean dropped;

  /**
   * What the peer has been told of the end.
   *
   * <pre>
   *   NONE_SENT --finished--> FIN_SENT --closed--> CLOSE_SENT
   *       '-----closed, or dropped------------------^
   * </pre>
   */
  private enum Ending {
    NONE_SENT,
    FIN_SENT,
    CLOSE_SENT
  }

  SendSide(
      StreamEnd stream,
      BufferPool pool,
      Counters counters,
      int messageBytes,
      int rendezvousBytes,
      long windowBytes) {
    this.stream = stream;
    this.pool = pool;
    this.counters = counters;
    this.messageBytes = Math.min(messageBytes, pool.largeBytes());
    this.rendezvousBytes = rendezvousBytes;
    grantedCost = windowBytes;
  }

  // ---- the writer

  /**
   * Takes bytes as far as window and pool go; never waits.
   *
   * @return bytes taken
   */
  int put(ByteBuffer from) {
    try {
      return put(
          from.remaining(),
          (to, count) -> {
            to.put(to.position(), from, from.position(), count);
            to.position(to.position() + count);
            from.position(from.position() + count);
            return count;
          });
    } catch (IOException e) {
      throw new IllegalStateException("memory fails no reads", e);
    }
  }

  /** Takes bytes of a file, as {@link #put(ByteBuffer)}. */
  int put(FileChannel file, long position, int count) throws IOException {
    long[] next = {position};
    return put(
        count,
        (to, most) -> {
          int limit = to.limit();
          to.limit(to.position() + most);
          int read = file.read(to, next[0]);
          to.limit(limit);
          if (read < 0) {
            throw new EOFException("file ends at " + next[0]);
          }
          next[0] += read;
          return read;
        });
  }

  /** Where bytes come from: moves some, at most so many, to the buffer's position. */
  @FunctionalInterface
  private interface Source {
    int move(ByteBuffer to, int most) throws IOException;
  }

  private int put(int bytes, Source source) throws IOException {
    int taken = 0;
    staging.lock();
    try {
      while (taken < bytes && !finished && !dropped) {
        if (staged == null && !stage(bytes - taken)) {
          break;
        }
        taken += source.move(staged.payload, Math.min(bytes - taken, staged.payload.remaining()));
        if (!staged.payload.hasRemaining()) {
          seal();
          stream.due();
        }
      }
    } finally {
      staging.unlock();
    }
    offer();
    return taken;
  }

  /** Gets a buffer to fill, and so much of the window. */
  private boolean stage(int wanted) {
    long windowLeft = grantedCost - sealedCost;
    if (windowLeft < WindowCost.LEAST) {
      return false;
    }
    int most = (int) Math.min(windowLeft, messageBytes);
    int size = outstanding.get() == 0 ? Math.min(wanted, most) : most;
    PooledBuffer buffer = pool.take(size);
    if (buffer == null && size > pool.smallBytes()) {
      buffer = pool.take(pool.smallBytes());
    }
    if (buffer == null && outstanding.get() == 0) {
      buffer = pool.unpooled(Math.min(size, pool.smallBytes()));
    }
    if (buffer == null) {
      starved = true;
      stream.tellWhenBuffersFree();
      return false;
    }
    starved = false;
    buffer.payload.limit(Math.min(buffer.capacity(), most));
    staged = buffer;
    return true;
  }

  /** Ends the message that is being filled. */
  private void seal() {
    PooledBuffer buffer = staged;
    staged = null;
    buffer.payload.flip();
    sealedCost += WindowCost.of(buffer.payload.remaining());
    usedCost = sealedCost;
    outstanding.incrementAndGet();
    sealed.add(buffer);
  }

  /**
   * Sends what is staged if nothing is on its way. A leader that finds the lock taken leaves it to
   * the holder, who calls this after having let go of it.
   */
  private void offer() {
    boolean more;
    do {
      boolean sealedOne = false;
      if (!staging.tryLock()) {
        return;
      }
      try {
        more = staged != null && staged.payload.position() > 0;
        if (more && outstanding.get() == 0) {
          seal();
          sealedOne = true;
        }
      } finally {
        staging.unlock();
      }
      if (sealedOne) {
        stream.due();
      }
    } while (more && outstanding.get() == 0);
  }

  /** Whether {@link #put} would take at least a byte. */
  boolean ready() {
    if (finished || dropped || staged != null) {
      return true;
    }
    return grantedCost - usedCost >= WindowCost.LEAST && (!starved || outstanding.get() == 0);
  }

  /** No more is written; what was written still goes out. */
  void finish() {
    staging.lock();
    try {
      if (staged != null && staged.payload.position() > 0) {
        seal();
      }
      finished = true;
    } finally {
      staging.unlock();
    }
    stream.due();
  }

  boolean finished() {
    return finished;
  }

  // ---- the leader

  /** The peer lets us go on, up to its window ahead of what we sent. */
  void onCredit(long grant, long windowBytes) throws IOException {
    if (grant - usedCost > windowBytes) {
      throw new IOException("credit beyond the window");
    }
    if (grant - grantedCost > 0) {
      grantedCost = grant;
      stream.tell();
    }
  }

  /** Buffers have come back to the pool. */
  void buffersFree() {
    starved = false;
  }

  /** Hands to UCX what is sealed, and the end when that is next. */
  int run() {
    int done = 0;
    offer();
    for (PooledBuffer next = sealed.poll(); next != null; next = sealed.poll()) {
      send(next);
      done++;
    }
    if (finished && sealed.isEmpty()) {
      if (stream.closed() && ending != Ending.CLOSE_SENT) {
        ending = Ending.CLOSE_SENT;
        stream.control(Frame.CLOSE, sequence);
        done++;
      } else if (ending == Ending.NONE_SENT) {
        ending = Ending.FIN_SENT;
        stream.control(Frame.FIN, sequence);
        done++;
      }
    }
    return done;
  }

  private void send(PooledBuffer buffer) {
    if (dropped) {
      buffer.release();
      outstanding.decrementAndGet();
      return;
    }
    int length = buffer.payload.remaining();
    boolean rendezvous = length >= rendezvousBytes;
    onTheWay.add(buffer);
    buffer.request = stream.send(buffer, sequence++, length, rendezvous);
    counters.bytesSent.add(length);
    (rendezvous ? counters.rendezvousSent : counters.eagerSent).increment();
    if (buffer.transferred()) {
      stream.reap();
    }
    if (transferring()) {
      stream.transfers();
    }
  }

  /**
   * Looks which transfers are done.
   *
   * @return how many
   */
  int reap() {
    int done = 0;
    boolean failed = false;
    while (!onTheWay.isEmpty()) {
      PooledBuffer buffer = onTheWay.peek();
      if (!buffer.transferred()) {
        break;
      }
      onTheWay.poll();
      if (buffer.request != null && buffer.request.getStatus() == UcsConstants.STATUS.UCS_OK) {
        buffer.release();
      } else {
        buffer.discard();
        failed = true;
      }
      outstanding.decrementAndGet();
      done++;
    }
    if (done > 0) {
      stream.due();
      stream.tell();
    }
    if (failed) {
      stream.transferFailed("send");
    }
    return done;
  }

  /** Whether {@link #reap} would find any. */
  boolean transferred() {
    PooledBuffer first = onTheWay.peek();
    return first != null && first.transferred();
  }

  boolean transferring() {
    return !onTheWay.isEmpty();
  }

  /** All is sent, the end too, and UCX is done with it. */
  boolean done() {
    return ending == Ending.CLOSE_SENT && onTheWay.isEmpty() && sealed.isEmpty();
  }

  /** Nothing more goes out. */
  void drop() {
    dropped = true;
    staging.lock();
    try {
      if (staged != null) {
        staged.release();
        staged = null;
      }
    } finally {
      staging.unlock();
    }
    for (PooledBuffer next = sealed.poll(); next != null; next = sealed.poll()) {
      next.release();
      outstanding.decrementAndGet();
    }
    ending = Ending.CLOSE_SENT;
  }
}

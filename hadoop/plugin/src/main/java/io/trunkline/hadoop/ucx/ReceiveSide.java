package io.trunkline.hadoop.ucx;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import org.openucx.jucx.UcxUtils;
import org.openucx.jucx.ucp.UcpAmData;
import org.openucx.jucx.ucs.UcsConstants;

/**
 * Receiving half of a stream. The leader of its worker brings messages in, one reader takes bytes
 * out. What a peer may have on its way is bounded by the window that was granted; a message outside
 * of it is a fault of the peer.
 */
final class ReceiveSide {
  /** Below that an eager message is kept on the heap. */
  private static final int HEAP_BYTES = 4096;

  private final StreamEnd stream;
  private final BufferPool pool;
  private final int messageBytes;
  private final long windowBytes;

  // Of who calls UCX alone.
  private final Map<Long, Arrival> early = new HashMap<>();
  private final ArrayDeque<Arrival> held = new ArrayDeque<>();
  private final ArrayDeque<Arrival> receiving = new ArrayDeque<>();
  private long nextSequence;
  private long arrivedCost;
  private boolean endCame;

  // Under this object's lock.
  private final ArrayDeque<Arrival> arrivals = new ArrayDeque<>();
  private boolean dropped;

  private volatile long grantedCost;
  private volatile long consumedCost;
  private volatile boolean creditDue;
  private volatile boolean holding;
  private volatile boolean useUnpooled;

  ReceiveSide(StreamEnd stream, BufferPool pool, int messageBytes, long windowBytes) {
    this.stream = stream;
    this.pool = pool;
    this.messageBytes = messageBytes;
    this.windowBytes = windowBytes;
    grantedCost = windowBytes;
  }

  // ---- the leader

  /**
   * A message has come.
   *
   * @return what UCX wants to hear of it: whether we keep it
   * @throws IOException when the peer breaks the rules; nothing was kept
   */
  int onData(Frame frame, UcpAmData message) throws IOException {
    if (endCame && frame.sequence() - nextSequence >= 0 && early.isEmpty()) {
      throw new IOException("message after the end");
    }
    if (isDropped()) {
      return UcsConstants.STATUS.UCS_OK;
    }
    int length = frame.length();
    if (length <= 0 || length > messageBytes || length != message.getLength()) {
      throw new IOException("message of " + length + " bytes, " + message.getLength() + " came");
    }
    check(frame.sequence());
    if (arrivedCost + WindowCost.of(length) - grantedCost > 0) {
      throw new IOException("message beyond the window");
    }
    arrivedCost += WindowCost.of(length);
    if (message.isDataValid()) {
      ByteBuffer bytes = UcxUtils.getByteBufferView(message.getDataAddress(), length);
      arrive(eager(frame.sequence(), bytes));
      return UcsConstants.STATUS.UCS_OK;
    }
    Arrival arrival = Arrival.held(frame.sequence(), length, message.getDataHandle());
    held.add(arrival);
    holding = true;
    arrive(arrival);
    stream.due();
    return UcsConstants.STATUS.UCS_INPROGRESS;
  }

  private Arrival eager(long sequence, ByteBuffer bytes) {
    PooledBuffer buffer = bytes.remaining() < HEAP_BYTES ? null : pool.take(bytes.remaining());
    ByteBuffer copy =
        buffer == null ? ByteBuffer.allocate(bytes.remaining()) : buffer.payload.duplicate();
    copy.put(bytes).flip();
    return Arrival.ready(sequence, copy, buffer);
  }

  /** The peer writes no more; said again when it reads no more either. */
  void onEnd(long sequence) throws IOException {
    if (!isDropped() && !endCame) {
      check(sequence);
      endCame = true;
      arrive(Arrival.end(sequence));
    }
  }

  private void check(long sequence) throws IOException {
    long ahead = sequence - nextSequence;
    if (ahead < 0 || ahead > windowBytes / WindowCost.LEAST || early.containsKey(sequence)) {
      throw new IOException("message " + sequence + " where " + nextSequence + " was expected");
    }
  }

  private void arrive(Arrival arrival) {
    if (arrival.sequence != nextSequence) {
      early.put(arrival.sequence, arrival);
      return;
    }
    synchronized (this) {
      for (Arrival next = arrival; next != null; next = early.remove(nextSequence)) {
        arrivals.add(next);
        nextSequence++;
      }
    }
    stream.tell();
  }

  /** Begins to receive what is held, as far as there are buffers; sends a credit that is due. */
  int run() {
    int done = 0;
    while (!held.isEmpty()) {
      Arrival arrival = held.peek();
      PooledBuffer buffer = pool.take(arrival.length);
      if (buffer == null && mayGoUnpooled(arrival)) {
        buffer = pool.unpooled(arrival.length);
      }
      if (buffer == null) {
        stream.tellWhenBuffersFree();
        break;
      }
      held.poll();
      receive(arrival, buffer);
      done++;
    }
    holding = !held.isEmpty();
    if (creditDue) {
      creditDue = false;
      grantedCost = consumedCost + windowBytes;
      stream.control(Frame.CREDIT, grantedCost);
      done++;
    }
    return done;
  }

  /** Only for the next message of a reader that waits, so that no stream stands still. */
  private synchronized boolean mayGoUnpooled(Arrival arrival) {
    return useUnpooled && receiving.isEmpty() && arrivals.peek() == arrival;
  }

  private void receive(Arrival arrival, PooledBuffer buffer) {
    arrival.buffer = buffer;
    arrival.state = Arrival.State.RECEIVING;
    receiving.add(arrival);
    buffer.request = stream.receive(arrival.descriptor, buffer, arrival.length);
    if (buffer.transferred()) {
      reap();
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
    while (!receiving.isEmpty()) {
      Arrival arrival = receiving.peek();
      if (!arrival.buffer.transferred()) {
        break;
      }
      receiving.poll();
      finish(arrival);
      done++;
    }
    if (done > 0) {
      stream.tell();
    }
    return done;
  }

  private void finish(Arrival arrival) {
    PooledBuffer buffer = arrival.buffer;
    boolean good =
        buffer.request != null && buffer.request.getStatus() == UcsConstants.STATUS.UCS_OK;
    boolean late;
    synchronized (this) {
      late = arrival.abandoned || !good;
      if (!late) {
        arrival.data = buffer.payload.duplicate().limit(arrival.length);
        arrival.state = Arrival.State.READY;
      }
    }
    if (late) {
      arrival.release();
      if (!good) {
        stream.transferFailed("receive");
      }
    }
  }

  /** Whether {@link #reap} would find any. */
  boolean transferred() {
    Arrival first = receiving.peek();
    return first != null && first.buffer.transferred();
  }

  boolean transferring() {
    return !receiving.isEmpty();
  }

  /** Nobody reads any more: forgets what came and what will come. */
  void drop() {
    ArrayDeque<Arrival> gone;
    synchronized (this) {
      dropped = true;
      gone = new ArrayDeque<>(arrivals);
      arrivals.clear();
    }
    gone.addAll(early.values());
    early.clear();
    for (Arrival arrival : gone) {
      abandon(arrival);
    }
    refuseHeld();
  }

  private static void abandon(Arrival arrival) {
    arrival.abandoned = true;
    if (arrival.state == Arrival.State.READY) {
      arrival.release();
    }
  }

  /**
   * The connection is gone: what is here can be read, but holds no memory of the pool, which may go
   * as well; what is not here will not come.
   */
  void cut() {
    synchronized (this) {
      boolean missing = false;
      for (Iterator<Arrival> all = arrivals.iterator(); all.hasNext(); ) {
        Arrival arrival = all.next();
        missing |= arrival.state != Arrival.State.READY;
        if (missing) {
          all.remove();
          abandon(arrival);
        } else {
          arrival.leavePool();
        }
      }
    }
    early.values().forEach(ReceiveSide::abandon);
    early.clear();
    refuseHeld();
  }

  private void refuseHeld() {
    for (Arrival arrival = held.poll(); arrival != null; arrival = held.poll()) {
      stream.refuse(arrival.descriptor);
    }
    holding = false;
  }

  // ---- the reader

  private synchronized boolean isDropped() {
    return dropped;
  }

  /** Whether a read would not wait: bytes, or the end, are here. */
  synchronized boolean ready() {
    Arrival first = arrivals.peek();
    return first != null && first.state == Arrival.State.READY;
  }

  /**
   * Says that a reader waits, or no longer. A reader that waits may have its message received
   * outside the pool when that is empty.
   *
   * @return whether the leader has something to do for it
   */
  boolean waits(boolean reader) {
    useUnpooled = reader;
    return reader && holding;
  }

  /**
   * Takes what is here.
   *
   * @return bytes taken, 0 when none are here, -1 at the end
   */
  int take(ByteBuffer to) {
    int taken = 0;
    while (to.hasRemaining()) {
      Arrival arrival;
      synchronized (this) {
        arrival = arrivals.peek();
        if (arrival == null || arrival.state != Arrival.State.READY) {
          break;
        }
        if (arrival.end) {
          return taken == 0 ? -1 : taken;
        }
        taken += copy(arrival.data, to);
        if (arrival.data.hasRemaining()) {
          break;
        }
        arrivals.poll();
      }
      arrival.release();
      consumed(arrival.length);
    }
    return taken;
  }

  private static int copy(ByteBuffer from, ByteBuffer to) {
    int count = Math.min(from.remaining(), to.remaining());
    to.put(to.position(), from, from.position(), count);
    to.position(to.position() + count);
    from.position(from.position() + count);
    return count;
  }

  private void consumed(int length) {
    consumedCost += WindowCost.of(length); // one reader at a time
    if (consumedCost + windowBytes - grantedCost >= windowBytes / 4) {
      creditDue = true;
      stream.due();
    }
  }
}

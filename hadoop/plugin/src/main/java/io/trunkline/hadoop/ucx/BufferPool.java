package io.trunkline.hadoop.ucx;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.openucx.jucx.UcxException;
import org.openucx.jucx.ucp.UcpContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Registered buffers of two sizes: small ones for eager messages, large ones for those that go by
 * rendezvous. They are made by the {@link Slab} when first needed, up to a bound on the registered
 * bytes, kept for the next user, and deregistered when a whole slab has been unused for long.
 */
final class BufferPool {
  private static final Logger LOG = LoggerFactory.getLogger(BufferPool.class);

  private final UcpContext context;
  private final long boundBytes;
  private final Counters counters;

  // All below under this object's lock.
  private final Size small;
  private final Size large;
  private final ArrayDeque<Waiter> starving = new ArrayDeque<>();
  private long registeredBytes;
  private long inUseBytes;
  private long unpooledBytes;
  private boolean closed;

  /** The buffers of one size, the one used last first. */
  private static final class Size {
    final int payloadBytes;
    final int slabBytes;
    final ArrayDeque<PooledBuffer> free = new ArrayDeque<>();
    final List<Slab> slabs = new ArrayList<>();

    Size(int payloadBytes) {
      this.payloadBytes = payloadBytes;
      slabBytes = Slab.bytes(payloadBytes);
    }
  }

  /**
   * A pool, empty.
   *
   * @param context where memory is registered
   * @param boundBytes most bytes registered
   * @param smallBytes payload of a small buffer
   * @param largeBytes payload of a large buffer
   * @param counters counts waits
   */
  BufferPool(
      UcpContext context, long boundBytes, int smallBytes, int largeBytes, Counters counters) {
    this.context = context;
    this.boundBytes = boundBytes;
    this.counters = counters;
    small = new Size(smallBytes);
    large = smallBytes == largeBytes ? small : new Size(largeBytes);
  }

  int smallBytes() {
    return small.payloadBytes;
  }

  int largeBytes() {
    return large.payloadBytes;
  }

  synchronized long registeredBytes() {
    return registeredBytes;
  }

  synchronized long inUseBytes() {
    return inUseBytes;
  }

  synchronized long unpooledBytes() {
    return unpooledBytes;
  }

  /**
   * A buffer whose payload holds at least some bytes.
   *
   * @param bytes at most the size of a large buffer
   * @return null when the pool has reached its bound
   */
  synchronized PooledBuffer take(int bytes) {
    PooledBuffer buffer = bytes <= small.payloadBytes ? take(small) : null;
    if (buffer == null) {
      buffer = take(large);
    }
    if (buffer == null) {
      counters.poolWaits.increment();
    }
    return buffer;
  }

  private PooledBuffer take(Size size) {
    if (closed || (size.free.isEmpty() && !grow(size))) {
      return null;
    }
    PooledBuffer buffer = size.free.pollFirst();
    buffer.slab.take(buffer);
    inUseBytes += buffer.capacity();
    buffer.payload.clear();
    return buffer;
  }

  private boolean grow(Size size) {
    Size other = size == small ? large : small;
    // Neither size keeps the other from its first slab.
    int left = other.slabs.isEmpty() ? other.slabBytes : 0;
    long most = size.slabs.isEmpty() ? boundBytes : boundBytes - left;
    if (registeredBytes + size.slabBytes > most && !freeIdle(other, most - size.slabBytes)) {
      return false;
    }
    try {
      Slab slab = new Slab(this, context, size.payloadBytes);
      registeredBytes += size.slabBytes;
      size.slabs.add(slab);
      size.free.addAll(slab.buffers());
      return true;
    } catch (UcxException | OutOfMemoryError e) {
      LOG.warn("UCX: cannot register {} bytes of memory: {}", size.slabBytes, e.toString());
      return false;
    }
  }

  /** Slabs that nobody uses give way to another size. */
  private boolean freeIdle(Size from, long mostBytes) {
    removeIdle(from, 0, mostBytes);
    return registeredBytes <= mostBytes;
  }

  /** Deregisters slabs that have been unused for some time, until few enough bytes are left. */
  private void removeIdle(Size size, long idleNanos, long enoughBytes) {
    long now = System.nanoTime();
    for (Iterator<Slab> all = size.slabs.iterator(); all.hasNext(); ) {
      Slab slab = all.next();
      if (registeredBytes > enoughBytes
          && slab.idle()
          && now - slab.idleSinceNanos() >= idleNanos) {
        all.remove();
        size.free.removeIf(buffer -> buffer.slab == slab);
        registeredBytes -= size.slabBytes;
        slab.deregister();
      }
    }
  }

  /**
   * A buffer outside the pool and its bound, for a stream that would stand still otherwise. A
   * stream has at most one for each direction. It is not registered by us; UCX registers what goes
   * by rendezvous over a NIC, as long as that takes.
   *
   * @param bytes payload
   * @return null when the JVM has no memory for it
   */
  PooledBuffer unpooled(int bytes) {
    try {
      ByteBuffer payload = ByteBuffer.allocateDirect(bytes);
      ByteBuffer header = ByteBuffer.allocateDirect(Frame.BYTES);
      PooledBuffer buffer = new PooledBuffer(this, null, payload, header, Slab.hostMemory());
      synchronized (this) {
        buffer.owned = true;
        unpooledBytes += bytes;
      }
      return buffer;
    } catch (OutOfMemoryError e) {
      LOG.warn("UCX: cannot allocate a buffer of {} bytes: {}", bytes, e.toString());
      return null;
    }
  }

  /** Wakes a waiter once, when a buffer comes back. */
  synchronized void tellWhenFree(Waiter waiter) {
    if (!starving.contains(waiter)) {
      starving.add(waiter);
    }
  }

  void put(PooledBuffer buffer) {
    back(buffer, false);
  }

  /** As {@link #put}, and the buffer is never used again. */
  void discard(PooledBuffer buffer) {
    back(buffer, true);
  }

  private void back(PooledBuffer buffer, boolean spoilt) {
    List<Waiter> woken = List.of();
    synchronized (this) {
      if (buffer.slab == null) {
        buffer.disown();
        unpooledBytes -= buffer.capacity();
      } else {
        backInSlab(buffer, spoilt);
      }
      if (!starving.isEmpty()) {
        woken = new ArrayList<>(starving);
        starving.clear();
      }
    }
    for (Waiter waiter : woken) {
      waiter.wake();
    }
  }

  private void backInSlab(PooledBuffer buffer, boolean spoilt) {
    Slab slab = buffer.slab;
    slab.back(buffer, spoilt);
    inUseBytes -= buffer.capacity();
    if (!closed) {
      Size size = buffer.capacity() == small.payloadBytes ? small : large;
      if (!spoilt) {
        size.free.addFirst(buffer);
      } else if (slab.spent()) {
        removeIdle(size, 0, 0);
      }
    }
  }

  /** Deregisters what has been free for some time. */
  synchronized void trim(long idleNanos) {
    removeIdle(small, idleNanos, 0);
    removeIdle(large, idleNanos, 0);
  }

  /**
   * Deregisters all; nobody may hold a buffer but to give it back, and UCX must be done with all.
   */
  synchronized void close() {
    closed = true;
    for (Size size : List.of(small, large)) {
      size.free.clear();
      size.slabs.forEach(Slab::deregister);
      size.slabs.clear();
    }
    registeredBytes = 0;
  }
}

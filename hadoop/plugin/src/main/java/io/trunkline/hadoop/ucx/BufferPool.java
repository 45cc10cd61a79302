package io.trunkline.hadoop.ucx;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.openucx.jucx.UcxException;
import org.openucx.jucx.UcxUtils;
import org.openucx.jucx.ucp.UcpContext;
import org.openucx.jucx.ucp.UcpMemory;
import org.openucx.jucx.ucp.UcpRequestParams;
import org.openucx.jucx.ucs.UcsConstants;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Registered buffers of two sizes: small ones for eager messages, large ones for those that go by
 * rendezvous. They are made when first needed, up to a bound on the registered bytes, kept for the
 * next user, and deregistered when unused for long.
 */
final class BufferPool {
  private static final Logger LOG = LoggerFactory.getLogger(BufferPool.class);
  private static final int PAGE = 4096;

  private final UcpContext context;
  private final long boundBytes;
  private final int smallBytes;
  private final int largeBytes;
  private final Counters counters;

  // All below under this object's lock. Newest first, so that the old ones can be trimmed.
  private final ArrayDeque<Free> small = new ArrayDeque<>();
  private final ArrayDeque<Free> large = new ArrayDeque<>();
  private final ArrayDeque<Waiter> starving = new ArrayDeque<>();
  private final Set<PooledBuffer> registered = new HashSet<>();
  private long registeredBytes;
  private long inUseBytes;
  private boolean closed;

  private record Free(PooledBuffer buffer, long sinceNanos) {}

  /**
   * A pool, empty.
   *
   * @param context where memory is registered
   * @param boundBytes most bytes registered
   * @param smallBytes payload of a small buffer
   * @param largeBytes payload of a large buffer
   * @param counters told of waits
   */
  BufferPool(
      UcpContext context, long boundBytes, int smallBytes, int largeBytes, Counters counters) {
    this.context = context;
    this.boundBytes = boundBytes;
    this.smallBytes = smallBytes;
    this.largeBytes = largeBytes;
    this.counters = counters;
  }

  int smallBytes() {
    return smallBytes;
  }

  int largeBytes() {
    return largeBytes;
  }

  synchronized long registeredBytes() {
    return registeredBytes;
  }

  synchronized long inUseBytes() {
    return inUseBytes;
  }

  /**
   * A buffer whose payload holds at least some bytes.
   *
   * @param bytes at most the size of a large buffer
   * @return null when the pool has reached its bound
   */
  synchronized PooledBuffer take(int bytes) {
    PooledBuffer buffer = bytes <= smallBytes ? take(small, smallBytes) : null;
    if (buffer == null) {
      buffer = take(large, largeBytes);
    }
    if (buffer == null) {
      counters.poolWaits.increment();
    }
    return buffer;
  }

  private PooledBuffer take(ArrayDeque<Free> free, int bytes) {
    if (closed) {
      return null;
    }
    Free newest = free.pollFirst();
    PooledBuffer buffer = newest == null ? make(bytes) : newest.buffer();
    if (buffer != null) {
      inUseBytes += registeredSize(buffer);
      buffer.payload.clear();
    }
    return buffer;
  }

  private static long registeredSize(PooledBuffer buffer) {
    return buffer.all.capacity();
  }

  private PooledBuffer make(int bytes) {
    long size = bytes + (long) PooledBuffer.HEADER_ROOM;
    if (registeredBytes + size > boundBytes && !makeRoom(size)) {
      return null;
    }
    try {
      ByteBuffer memory = aligned(bytes);
      UcpMemory registration = context.registerMemory(memory);
      registeredBytes += size;
      UcpRequestParams params = hostMemory().setMemoryHandle(registration);
      PooledBuffer buffer =
          new PooledBuffer(this, memory, UcxUtils.getAddress(memory), registration, params);
      registered.add(buffer);
      return buffer;
    } catch (UcxException | OutOfMemoryError e) {
      LOG.warn("no registered buffer of {} bytes: {}", size, e.toString());
      return null;
    }
  }

  /** Free buffers of the other size make room for one of this size. */
  private boolean makeRoom(long size) {
    while (registeredBytes + size > boundBytes) {
      Free oldest = large.isEmpty() ? small.pollLast() : large.pollLast();
      if (oldest == null) {
        return false;
      }
      deregister(oldest.buffer());
    }
    return true;
  }

  private void deregister(PooledBuffer buffer) {
    registeredBytes -= registeredSize(buffer);
    registered.remove(buffer);
    buffer.deregister();
  }

  private static ByteBuffer aligned(int bytes) {
    int size = bytes + PooledBuffer.HEADER_ROOM;
    int pages = (size + PAGE - 1) / PAGE;
    return ByteBuffer.allocateDirect((pages + 1) * PAGE).alignedSlice(PAGE).slice(0, size);
  }

  /** UCX must not guess: what stands for "unknown" differs between its versions. */
  private static UcpRequestParams hostMemory() {
    return new UcpRequestParams().setMemoryType(UcsConstants.MEMORY_TYPE.UCS_MEMORY_TYPE_HOST);
  }

  /**
   * A buffer outside the pool and its bound, not registered, for a stream that would stand still
   * otherwise. A stream has at most one for each direction.
   *
   * @param bytes payload
   * @return null when the JVM has no memory for it
   */
  static PooledBuffer unpooled(int bytes) {
    try {
      ByteBuffer memory = aligned(bytes);
      return new PooledBuffer(null, memory, UcxUtils.getAddress(memory), null, hostMemory());
    } catch (OutOfMemoryError e) {
      LOG.warn("no buffer of {} bytes: {}", bytes, e.toString());
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
    List<Waiter> told = List.of();
    synchronized (this) {
      inUseBytes -= registeredSize(buffer);
      if (!closed && spoilt) {
        deregister(buffer);
      } else if (!closed) {
        (buffer.capacity() == smallBytes ? small : large)
            .addFirst(new Free(buffer, System.nanoTime()));
      }
      if (!starving.isEmpty()) {
        told = new ArrayList<>(starving);
        starving.clear();
      }
    }
    for (Waiter waiter : told) {
      waiter.wake();
    }
  }

  /** Deregisters buffers that have been free for some time. */
  synchronized void trim(long idleNanos) {
    long now = System.nanoTime();
    for (ArrayDeque<Free> free : List.of(small, large)) {
      while (!free.isEmpty() && now - free.peekLast().sinceNanos() >= idleNanos) {
        deregister(free.pollLast().buffer());
      }
    }
  }

  /** Deregisters all, also what somebody still holds; UCX must be done with every buffer. */
  synchronized void close() {
    closed = true;
    small.clear();
    large.clear();
    for (PooledBuffer buffer : List.copyOf(registered)) {
      deregister(buffer);
    }
  }
}

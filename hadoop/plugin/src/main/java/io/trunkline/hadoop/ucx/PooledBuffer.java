package io.trunkline.hadoop.ucx;

import java.nio.ByteBuffer;
import org.openucx.jucx.UcxUtils;
import org.openucx.jucx.ucp.UcpRequest;
import org.openucx.jucx.ucp.UcpRequestParams;

/**
 * Off-heap memory of one message and of its frame's header. It belongs to one owner at a time, who
 * returns it by {@link #release} or {@link #discard}.
 */
final class PooledBuffer {
  /** Payload; position and limit are the owner's. */
  final ByteBuffer payload;

  /** Where the payload is. */
  final long address;

  /** Room for a {@link Frame}. */
  final ByteBuffer header;

  /** Where the header is. */
  final long headerAddress;

  final UcpRequestParams params;

  /** The transfer that UCX does with it now. */
  UcpRequest request;

  private final BufferPool pool;

  /** What it is a part of, null for one that is used once. */
  final Slab slab;

  /** Whether it has an owner; the pool's. */
  boolean owned;

  PooledBuffer(
      BufferPool pool, Slab slab, ByteBuffer payload, ByteBuffer header, UcpRequestParams params) {
    this.pool = pool;
    this.slab = slab;
    this.payload = payload;
    this.header = header;
    this.params = params;
    address = UcxUtils.getAddress(payload);
    headerAddress = UcxUtils.getAddress(header);
  }

  /**
   * It has no owner any more.
   *
   * @throws IllegalStateException when it had none: two would share it
   */
  void disown() {
    if (!owned) {
      throw new IllegalStateException("a buffer came back twice");
    }
    owned = false;
  }

  int capacity() {
    return payload.capacity();
  }

  /** Whether UCX is done with it, for better or worse. */
  boolean transferred() {
    return request == null || request.isCompleted();
  }

  /** Gives it back; nobody may touch it afterwards, least of all UCX. */
  void release() {
    request = null;
    pool.put(this);
  }

  /**
   * Gives it up after a transfer that failed, whose other end may still read it: nobody gets this
   * memory again.
   */
  void discard() {
    request = null;
    pool.discard(this);
  }
}

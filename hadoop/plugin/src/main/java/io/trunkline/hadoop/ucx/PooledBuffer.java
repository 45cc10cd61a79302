package io.trunkline.hadoop.ucx;

import java.nio.ByteBuffer;
import org.openucx.jucx.ucp.UcpMemory;
import org.openucx.jucx.ucp.UcpRequest;
import org.openucx.jucx.ucp.UcpRequestParams;

/**
 * Off-heap memory of one message: payload, and behind it room for the frame's header. It belongs to
 * one owner at a time, who returns it by {@link #release}.
 */
final class PooledBuffer {
  /** Bytes behind the payload. */
  static final int HEADER_ROOM = 64;

  /** Payload; position and limit are the owner's. */
  final ByteBuffer payload;

  /** Payload and header. */
  final ByteBuffer all;

  final long address;
  final UcpRequestParams params;

  /** The transfer that UCX does with it now. */
  UcpRequest request;

  private final BufferPool pool;
  private final UcpMemory memory;

  /**
   * A buffer.
   *
   * @param pool where it goes when released, null for one that is used once
   * @param all memory: payload, then {@link #HEADER_ROOM}
   * @param address of the memory
   * @param memory its registration, null when not registered
   * @param params for UCX
   */
  PooledBuffer(
      BufferPool pool, ByteBuffer all, long address, UcpMemory memory, UcpRequestParams params) {
    this.pool = pool;
    this.all = all;
    this.address = address;
    this.memory = memory;
    this.params = params;
    payload = all.slice(0, all.capacity() - HEADER_ROOM);
  }

  int capacity() {
    return payload.capacity();
  }

  int headerAt() {
    return payload.capacity();
  }

  long headerAddress() {
    return address + payload.capacity();
  }

  /** Gives it back; nobody may touch it afterwards, least of all UCX. */
  void release() {
    request = null;
    if (pool != null) {
      pool.put(this);
    }
  }

  /**
   * Gives it up after a transfer that failed, whose other end may still read it: nobody gets this
   * memory again.
   */
  void discard() {
    request = null;
    if (pool != null) {
      pool.discard(this);
    }
  }

  void deregister() {
    memory.deregister();
  }
}

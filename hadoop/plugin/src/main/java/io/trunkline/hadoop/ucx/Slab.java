package io.trunkline.hadoop.ucx;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.openucx.jucx.UcxUtils;
import org.openucx.jucx.ucp.UcpContext;
import org.openucx.jucx.ucp.UcpMemMapParams;
import org.openucx.jucx.ucp.UcpMemory;
import org.openucx.jucx.ucp.UcpRequestParams;
import org.openucx.jucx.ucs.UcsConstants;

/**
 * A piece of registered memory and the equal buffers in it. UCX allocates it, in huge pages where
 * the kernel has them: what one process copies from another's memory, or a NIC reads, is then found
 * and pinned by 2 MiB instead of 4 KiB at a time. All of it under its pool's lock.
 */
final class Slab {
  /** Of x86-64 and most of AArch64; elsewhere slabs are just not in huge pages. */
  private static final int HUGE_PAGE = 2 << 20;

  private static final int PAGE = 4096;

  private final UcpMemory memory;
  private final List<PooledBuffer> buffers;
  private int owned;
  private int spoilt;
  private long idleSinceNanos = System.nanoTime();

  /**
   * Allocates and registers.
   *
   * @param pool whose it is
   * @param context where memory is registered
   * @param payloadBytes of each buffer
   * @throws org.openucx.jucx.UcxException when there is no memory, or it cannot be registered
   */
  Slab(BufferPool pool, UcpContext context, int payloadBytes) {
    int count = count(payloadBytes);
    ByteBuffer headers = ByteBuffer.allocateDirect(count * Frame.BYTES);
    memory =
        context.memoryMap(
            new UcpMemMapParams()
                .allocate()
                .setLength(bytes(payloadBytes))
                .setMemoryType(UcsConstants.MEMORY_TYPE.UCS_MEMORY_TYPE_HOST));
    ByteBuffer all = UcxUtils.getByteBufferView(memory.getAddress(), bytes(payloadBytes));
    UcpRequestParams params = hostMemory().setMemoryHandle(memory);
    buffers = new ArrayList<>(count);
    for (int i = 0; i < count; i++) {
      ByteBuffer payload = all.slice(i * stride(payloadBytes), payloadBytes);
      ByteBuffer header = headers.slice(i * Frame.BYTES, Frame.BYTES);
      buffers.add(new PooledBuffer(pool, this, payload, header, params));
    }
  }

  private static int stride(int payloadBytes) {
    return roundUp(payloadBytes, PAGE);
  }

  private static int count(int payloadBytes) {
    return Math.max(1, HUGE_PAGE / stride(payloadBytes));
  }

  /** How large a slab is whose buffers have so much payload. */
  static int bytes(int payloadBytes) {
    return roundUp(count(payloadBytes) * stride(payloadBytes), HUGE_PAGE);
  }

  private static int roundUp(int bytes, int unit) {
    return (bytes + unit - 1) / unit * unit;
  }

  /** UCX must not guess: what stands for "unknown" differs between its versions. */
  static UcpRequestParams hostMemory() {
    return new UcpRequestParams().setMemoryType(UcsConstants.MEMORY_TYPE.UCS_MEMORY_TYPE_HOST);
  }

  List<PooledBuffer> buffers() {
    return buffers;
  }

  /** A buffer of it gets an owner. */
  void take(PooledBuffer buffer) {
    buffer.owned = true;
    owned++;
  }

  /**
   * A buffer of it comes back.
   *
   * @param spoils whether it must not be used again
   * @throws IllegalStateException when it has no owner: two would share it
   */
  void back(PooledBuffer buffer, boolean spoils) {
    buffer.disown();
    owned--;
    spoilt += spoils ? 1 : 0;
    idleSinceNanos = System.nanoTime();
  }

  /** Whether nobody owns any of it. */
  boolean idle() {
    return owned == 0;
  }

  /** Whether no buffer of it is left to use. */
  boolean spent() {
    return spoilt == buffers.size();
  }

  /** Since when it has been as it is. */
  long idleSinceNanos() {
    return idleSinceNanos;
  }

  /** Returns the memory; nobody may touch a buffer of it any more. */
  void deregister() {
    memory.deregister();
  }
}

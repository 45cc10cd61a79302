package io.trunkline.hadoop.ucx;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * What lies in a node's registered memory. All that is sent by UCX is copied there, and stays until
 * other bytes come to the same place.
 */
public final class RegisteredMemory {
  private RegisteredMemory() {}

  /** Whether some bytes lie there, one after the other, in what nobody uses at the moment. */
  public static boolean holds(UcxNode node, byte[] wanted) {
    BufferPool pool = node.pool();
    List<PooledBuffer> taken = new ArrayList<>();
    boolean found = false;
    for (int size : new int[] {pool.smallBytes(), pool.largeBytes()}) {
      long registered = pool.registeredBytes();
      // What the pool makes for this one has been nowhere.
      while (pool.registeredBytes() == registered) {
        PooledBuffer buffer = pool.take(size);
        if (buffer == null) {
          break;
        }
        taken.add(buffer);
        found |= holds(buffer.payload, wanted);
      }
    }
    taken.forEach(PooledBuffer::release);
    return found;
  }

  private static boolean holds(ByteBuffer memory, byte[] wanted) {
    byte[] bytes = new byte[memory.capacity()];
    memory.get(0, bytes);
    for (int i = 0; i + wanted.length <= bytes.length; i++) {
      if (bytes[i] == wanted[0]
          && Arrays.equals(bytes, i, i + wanted.length, wanted, 0, wanted.length)) {
        return true;
      }
    }
    return false;
  }
}

package io.trunkline.hadoop.ucx;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.conf.UcxSettings;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.openucx.jucx.ucp.UcpContext;
import org.openucx.jucx.ucp.UcpParams;

/** Buffers in registered memory: bounds, owners, and memory that goes back. */
class BufferPoolTest {
  private static final int SMALL = 64 << 10;
  private static final int LARGE = 512 << 10;
  private static final long MIB = 1 << 20;

  private UcpContext context;
  private BufferPool pool;

  @BeforeEach
  void need() throws Exception {
    UcxTests.needUcx();
    UcxLibrary.load(UcxSettings.builder().build());
    context = new UcpContext(new UcpParams().requestAmFeature());
  }

  private void open(long boundBytes, int small, int large) {
    pool = new BufferPool(context, boundBytes, small, large, new Counters());
  }

  @AfterEach
  void close() {
    if (pool != null) {
      pool.close();
      assertEquals(0, pool.registeredBytes());
      assertNull(pool.take(1));
    }
    if (context != null) {
      context.close();
    }
  }

  private List<PooledBuffer> takeAll(int bytes) {
    List<PooledBuffer> all = new ArrayList<>();
    for (PooledBuffer next = pool.take(bytes); next != null; next = pool.take(bytes)) {
      all.add(next);
    }
    return all;
  }

  @Test
  void buffersShareNoByteAndKeepWithinTheBound() {
    open(5 * MIB, SMALL, LARGE);
    List<PooledBuffer> all = takeAll(LARGE);
    assertTrue(pool.registeredBytes() <= 5 * MIB);
    all.addAll(takeAll(1));
    assertTrue(pool.registeredBytes() <= 5 * MIB);
    assertEquals(4 * MIB, pool.inUseBytes());
    for (int i = 0; i < all.size(); i++) {
      ByteBuffer payload = all.get(i).payload;
      while (payload.hasRemaining()) {
        payload.put((byte) i);
      }
      all.get(i).header.put(0, (byte) ~i);
    }
    for (int i = 0; i < all.size(); i++) {
      assertEquals((byte) ~i, all.get(i).header.get(0));
      ByteBuffer payload = all.get(i).payload.flip();
      while (payload.hasRemaining()) {
        assertEquals((byte) i, payload.get());
      }
    }
    all.forEach(PooledBuffer::release);
    assertEquals(0, pool.inUseBytes());
  }

  @Test
  void noSizeKeepsTheOtherOut() {
    open(4 * MIB, SMALL, LARGE);
    List<PooledBuffer> small = takeAll(1);
    assertTrue(small.stream().anyMatch(buffer -> buffer.capacity() == LARGE));
    small.stream().filter(buffer -> buffer.capacity() == LARGE).forEach(PooledBuffer::release);
    assertNotNull(pool.take(LARGE));
  }

  @Test
  void oneSizeGivesWayToTheOther() {
    open(8 * MIB, SMALL, LARGE);
    takeAll(LARGE).forEach(PooledBuffer::release);
    assertEquals(6 * MIB, pool.registeredBytes());
    List<PooledBuffer> small = takeAll(1);
    assertTrue(pool.registeredBytes() <= 8 * MIB);
    long bytes = small.stream().mapToLong(PooledBuffer::capacity).sum();
    assertEquals(pool.registeredBytes(), bytes);
  }

  @Test
  void oneSizeOnly() {
    open(4 * MIB, LARGE, LARGE);
    List<PooledBuffer> all = takeAll(1);
    assertEquals(8, all.size());
    all.forEach(PooledBuffer::release);
    pool.trim(0);
    assertEquals(0, pool.registeredBytes());
    assertNotNull(pool.take(LARGE));
  }

  @Test
  void nobodyGetsSpoiltMemory() {
    open(4 * MIB, SMALL, LARGE);
    PooledBuffer spoilt = pool.take(LARGE);
    Set<Long> rest = new HashSet<>();
    spoilt.discard();
    List<PooledBuffer> others = takeAll(LARGE);
    others.forEach(buffer -> rest.add(buffer.address));
    assertTrue(!rest.contains(spoilt.address));
    others.forEach(PooledBuffer::discard);
    assertEquals(0, pool.registeredBytes(), "all of a slab spoilt: it goes");
    assertNotNull(pool.take(LARGE));
  }

  @Test
  void aBufferComesBackOnce() {
    open(4 * MIB, SMALL, LARGE);
    PooledBuffer buffer = pool.take(LARGE);
    buffer.release();
    assertThrows(IllegalStateException.class, buffer::release);
    assertThrows(IllegalStateException.class, buffer::discard);
  }

  @Test
  void aBufferBesideThePoolIsCountedUntilItComesBack() {
    open(4 * MIB, SMALL, LARGE);
    PooledBuffer first = pool.unpooled(SMALL);
    PooledBuffer second = pool.unpooled(LARGE);
    assertEquals(SMALL + LARGE, pool.unpooledBytes());
    assertEquals(0, pool.registeredBytes());
    assertEquals(0, pool.inUseBytes());
    first.release();
    assertThrows(IllegalStateException.class, first::release);
    second.discard();
    assertEquals(0, pool.unpooledBytes());
  }

  @Test
  void whatIsUnusedForLongGoes() {
    open(64 * MIB, SMALL, LARGE);
    PooledBuffer held = pool.take(LARGE);
    pool.take(SMALL).release();
    pool.trim(60_000_000_000L);
    assertEquals(4 * MIB, pool.registeredBytes());
    pool.trim(0);
    assertEquals(2 * MIB, pool.registeredBytes());
    held.payload.put(0, (byte) 1);
    held.release();
    pool.trim(0);
    assertEquals(0, pool.registeredBytes());
  }
}

package io.trunkline.hadoop.ndn.read;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.ndn.read.ContentKeys.Granted;
import io.trunkline.hadoop.ndn.read.KeyCache.Key;
import io.trunkline.hadoop.ndn.wire.WriteKey;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class KeyCacheTest {
  private static final byte[] ID = {1, 2, 3, 4, 5, 6, 7, 8};

  private long now;
  private final KeyCache cache = new KeyCache(3, () -> now);

  private static Key key(long block) {
    return new Key("/hadoop", "p", block, 1001, ByteBuffer.wrap(new byte[32]));
  }

  private static Granted granted(int fill) {
    byte[] bytes = new byte[WriteKey.BYTES];
    Arrays.fill(bytes, (byte) fill);
    ReplicaMetadata metadata = new ReplicaMetadata(1001, 5, 64512, 2, 512, null);
    return new Granted(metadata, ID, new WriteKey(bytes));
  }

  private static boolean wiped(Granted granted) {
    return Arrays.equals(granted.key().bytes(), new byte[WriteKey.BYTES]);
  }

  @Test
  void whatIsGivenOutIsTheReadersOwn() {
    cache.put(key(1), granted(7), 100);
    Granted reader = cache.get(key(1)).granted();
    assertEquals(granted(7).key(), reader.key());
    reader.key().wipe();
    Granted other = cache.get(key(1)).granted();
    assertEquals(granted(7).key(), other.key());
    assertArrayEquals(ID, other.keyId());
    assertNull(cache.get(key(2)));
  }

  @Test
  void whatIsTooOldIsForgottenAndWiped() {
    Granted held = granted(7);
    cache.put(key(1), held, 100);
    Granted reader = cache.get(key(1)).granted();
    now = 99;
    assertTrue(cache.sweep());
    assertFalse(wiped(held));
    now = 100;
    assertFalse(cache.sweep(), "nothing is left");
    assertTrue(wiped(held));
    assertFalse(wiped(reader), "who reads goes on");
    assertNull(cache.get(key(1)));

    Granted another = granted(8);
    cache.put(key(1), another, 100);
    now = 200;
    assertNull(cache.get(key(2)), "any question has old ones forgotten");
    assertTrue(wiped(another));
  }

  @Test
  void whatIsReplacedOrPushedOutIsWiped() {
    List<Granted> held = List.of(granted(1), granted(2), granted(3), granted(4), granted(5));
    for (int block = 1; block <= 3; block++) {
      cache.put(key(block), held.get(block - 1), 100);
    }
    cache.get(key(1));
    cache.put(key(4), held.get(3), 100);
    assertNull(cache.get(key(2)), "the least recently used");
    cache.put(key(3), held.get(4), 100);
    assertEquals(granted(5).key(), cache.get(key(3)).granted().key());
    for (Granted granted : held) {
      boolean gone = granted == held.get(1) || granted == held.get(2);
      assertEquals(gone, wiped(granted));
    }
  }

  /** Whoever could not read may come after another who has got a new key already. */
  @Test
  void onlyTheKeyThatFailedIsForgotten() {
    Granted held = granted(7);
    cache.put(key(1), held, 100);
    cache.forget(key(1), new byte[20]);
    cache.forget(key(2), ID);
    assertFalse(wiped(held));
    cache.forget(key(1), ID);
    assertTrue(wiped(held));
    assertNull(cache.get(key(1)));
  }

  @Test
  void thatNothingIsGivenIsRememberedAsWell() {
    cache.put(key(1), null, 100);
    assertNotNull(cache.get(key(1)));
    assertNull(cache.get(key(1)).granted());
    cache.forget(key(1), ID);
    assertNotNull(cache.get(key(1)));
    now = 100;
    assertNull(cache.get(key(1)));
  }
}

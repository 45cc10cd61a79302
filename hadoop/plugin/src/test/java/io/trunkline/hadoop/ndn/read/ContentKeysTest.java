package io.trunkline.hadoop.ndn.read;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import io.trunkline.hadoop.ndn.read.ContentKeys.Granted;
import io.trunkline.hadoop.ndn.wire.WriteKey;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.security.token.block.BlockTokenIdentifier;
import org.apache.hadoop.hdfs.security.token.block.BlockTokenIdentifier.AccessMode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Who remembers a key for how long, and whose clock counts. */
class ContentKeysTest {
  private static final long MINUTE_MS = 60_000;
  private static final long NOW_MS = 1_700_000_000_000L;
  private static final ReplicaMetadata METADATA = new ReplicaMetadata(1001, 5, 64512, 2, 512, null);
  private static final KeyCache.Key KEY =
      new KeyCache.Key("/hadoop", "p", 7, 1001, ByteBuffer.wrap(new byte[32]));

  private long nanos;
  private final KeyCache cache = new KeyCache(10, () -> nanos);
  private int asked;

  /** By how much this process's clock is ahead of those of NameNode and DataNodes. */
  private long aheadMs;

  private void passes(long ms) {
    nanos += TimeUnit.MILLISECONDS.toNanos(ms);
  }

  private static byte[] key() {
    byte[] key = new byte[WriteKey.BYTES];
    Arrays.fill(key, (byte) 7);
    return key;
  }

  private static byte[] expires(long atMs, boolean protobuf) {
    BlockTokenIdentifier token =
        new BlockTokenIdentifier(
            "somebody",
            "p",
            7,
            EnumSet.of(AccessMode.READ),
            new StorageType[0],
            new String[0],
            protobuf);
    token.setExpiryDate(atMs);
    return token.getBytes();
  }

  private Granted get(byte[] identifier) throws IOException {
    return ContentKeys.get(
        cache,
        KEY,
        identifier,
        () -> NOW_MS + aheadMs + TimeUnit.NANOSECONDS.toMillis(nanos),
        () -> {
          asked++;
          return new Granted(METADATA, new byte[8], new WriteKey(key()));
        });
  }

  private void gets(byte[] identifier, int askedSoFar) throws IOException {
    Granted granted = get(identifier);
    assertEquals(new WriteKey(key()), granted.key(), "no key that has been wiped");
    granted.key().wipe();
    assertEquals(askedSoFar, asked);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aKeyIsRememberedNoLongerThanItsTokenLives(boolean protobuf) throws IOException {
    byte[] token = expires(NOW_MS + 10_000, protobuf);
    gets(token, 1);
    passes(9_999);
    gets(token, 1);
    passes(1);
    gets(token, 2);
    gets(token, 3);
  }

  @Test
  void norForLongerThanHalfAMinute() throws IOException {
    byte[] token = expires(NOW_MS + 10 * MINUTE_MS, true);
    gets(token, 1);
    passes(29_999);
    gets(token, 1);
    passes(1);
    gets(token, 2);
  }

  /** DataNodes find the token good, so it is; they are asked each time. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aClockFiveMinutesFastRefusesNoGoodToken(boolean protobuf) throws IOException {
    aheadMs = 5 * MINUTE_MS;
    byte[] token = expires(NOW_MS + MINUTE_MS, protobuf);
    gets(token, 1);
    gets(token, 2);
    byte[] longer = expires(NOW_MS + 10 * MINUTE_MS, protobuf);
    gets(longer, 3);
    gets(longer, 3);
  }

  /** Nothing tells it that the token has expired: DataNodes do, half a minute later at most. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aClockFiveMinutesSlowKeepsNoKeyForLong(boolean protobuf) throws IOException {
    aheadMs = -5 * MINUTE_MS;
    byte[] token = expires(NOW_MS + 1, protobuf);
    gets(token, 1);
    passes(29_999);
    gets(token, 1);
    passes(1);
    gets(token, 2);
  }

  @Test
  void withATokenThatDoesNotSayWhenItExpiresNothingIsRemembered() throws IOException {
    gets(new byte[0], 1);
    gets(new byte[] {-128, 1, 2}, 2);
    gets(new byte[0], 3);
  }

  /** A refusal is remembered for a moment, whatever the clock says. */
  @Test
  void aRefusalIsSoonAskedForAgain() throws IOException {
    byte[] token = expires(NOW_MS - MINUTE_MS, true);
    ContentKeys.Question refused =
        () -> {
          asked++;
          return null;
        };
    assertNull(ContentKeys.get(cache, KEY, token, () -> NOW_MS, refused));
    passes(499);
    assertNull(ContentKeys.get(cache, KEY, token, () -> NOW_MS, refused));
    assertEquals(1, asked);
    passes(1);
    gets(token, 2);
  }

  @Test
  void whatIsGivenStandsInNoText() {
    Granted granted = new Granted(METADATA, new byte[12], new WriteKey(new byte[WriteKey.BYTES]));
    assertEquals("Granted(" + METADATA + ")", granted.toString());
  }
}

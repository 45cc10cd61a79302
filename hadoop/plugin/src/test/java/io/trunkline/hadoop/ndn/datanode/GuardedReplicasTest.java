package io.trunkline.hadoop.ndn.datanode;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.trunkline.hadoop.ndn.wire.WriteKey;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

class GuardedReplicasTest {
  @Test
  void whatWasMadeForAnAnswerIsWipedAfterIt() {
    byte[] secret = {1, 2, 3};
    byte[] password = {4, 5};
    byte[] key = new byte[WriteKey.BYTES];
    Arrays.fill(key, (byte) 6);
    WriteKeys.Written written = new WriteKeys.Written(new WriteKey(key), 64512, 1, new byte[32]);
    try (GuardedReplicas.Keys keys = new GuardedReplicas.Keys(written, 9, secret, password)) {
      assertEquals(9, keys.serial());
    }
    assertArrayEquals(new byte[3], secret);
    assertArrayEquals(new byte[2], password);
    assertEquals(6, key[0], "the next reader is given it, too");
    new GuardedReplicas.Keys(null, 0, null, null).close();
  }
}

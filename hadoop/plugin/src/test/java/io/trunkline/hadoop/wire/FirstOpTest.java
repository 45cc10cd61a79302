package io.trunkline.hadoop.wire;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import org.apache.hadoop.hdfs.protocol.datatransfer.Op;
import org.junit.jupiter.api.Test;

class FirstOpTest {
  @Test
  void isSeenHoweverTheBytesAreCut() {
    byte[] read = {0, 28, 81, 5, 5};
    assertEquals(Op.READ_BLOCK, new FirstOp().seen(ByteBuffer.wrap(read)));
    FirstOp slow = new FirstOp();
    assertNull(slow.seen(ByteBuffer.wrap(read, 0, 1)));
    assertNull(slow.seen(ByteBuffer.wrap(read, 1, 0)));
    assertNull(slow.seen(ByteBuffer.wrap(read, 1, 1)));
    assertEquals(Op.READ_BLOCK, slow.seen(ByteBuffer.wrap(read, 2, 3)));
    assertNull(slow.seen(ByteBuffer.wrap(read)), "once");
    assertTrue(slow.done());
  }

  @Test
  void isNoneInAHandshake() {
    FirstOp sasl = new FirstOp();
    assertNull(sasl.seen(ByteBuffer.wrap(new byte[] {(byte) 0xDE, (byte) 0xAD, (byte) 0xBE, 80})));
    assertTrue(sasl.done());
    assertNull(new FirstOp().seen(ByteBuffer.wrap(new byte[] {0, 28, 1})));
  }
}

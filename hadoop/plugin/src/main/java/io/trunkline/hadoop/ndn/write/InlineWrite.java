package io.trunkline.hadoop.ndn.write;

import io.trunkline.hadoop.ndn.wire.ControlRecord;
import io.trunkline.hadoop.wire.PacketHead;
import java.nio.ByteBuffer;

/** Packets go on the control connection, all of them. */
final class InlineWrite extends NamedWrite {
  @Override
  ControlRecord recordOf(PacketHead head, byte[] body, int off) {
    return ControlRecord.inline(head);
  }

  /** Nothing is kept for whoever has not got it. */
  @Override
  void acknowledged(ByteBuffer stock) {}

  /** Nothing was published that could be asked for. */
  @Override
  void asked(long seqno) {}
}

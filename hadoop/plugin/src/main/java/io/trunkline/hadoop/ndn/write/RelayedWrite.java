package io.trunkline.hadoop.ndn.write;

import io.trunkline.hadoop.ndn.wire.ControlRecord;
import io.trunkline.hadoop.tap.TapConnection;
import io.trunkline.hadoop.wire.PacketHead;
import java.io.IOException;
import java.nio.ByteBuffer;

/** Packets come in by name, or inline, and go on to the next DataNode likewise. */
final class RelayedWrite extends NamedWrite {
  private final Inflow inflow;

  /**
   * A write.
   *
   * @param inflow the write as it comes in
   * @param connection the connection to the next DataNode
   */
  RelayedWrite(Inflow inflow, TapConnection connection) {
    this.inflow = inflow;
    inflow.relayTo(
        (head, body) ->
            connection.send(
                out -> {
                  put(ControlRecord.again(head), body, 0, out);
                  return false;
                }));
  }

  @Override
  ControlRecord recordOf(PacketHead head, byte[] body, int off) {
    ControlRecord record = inflow.recordOf(head);
    return record != null ? record : ControlRecord.inline(head);
  }

  /** Whoever publishes the bodies reads the acknowledgements. */
  @Override
  void acknowledged(ByteBuffer stock) {}

  /** Whoever sends the write is asked for what is asked here. */
  @Override
  void asked(long seqno) throws IOException {
    inflow.askUpstream(seqno);
  }

  @Override
  public void close() {
    inflow.relayTo(null);
  }
}

package io.trunkline.hadoop.ndn.write;

import io.trunkline.hadoop.ndn.wire.AnswerFrame;
import io.trunkline.hadoop.ndn.wire.ControlRecord;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.tap.PacketRewriter;
import io.trunkline.hadoop.tap.TapOutput;
import io.trunkline.hadoop.wire.PacketHead;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * A write whose bodies go by name: in place of each packet its {@link ControlRecord} goes down the
 * connection, and what comes back is in {@link AnswerFrame}s. Where a DataNode cannot get bodies by
 * name, they go down the connection again.
 */
abstract class NamedWrite implements PacketRewriter {
  private final TransferStats stats = TransferStats.get();
  private final AnswerFrame.Reader frames = new AnswerFrame.Reader();

  /** What stands for a packet; its body goes along unless the record is one by name. */
  abstract ControlRecord recordOf(PacketHead head, byte[] body, int off);

  /** Stock bytes have come back. */
  abstract void acknowledged(ByteBuffer stock);

  /** A DataNode further down asks on the connection for the bodies from a packet on. */
  abstract void asked(long seqno) throws IOException;

  @Override
  public final void packet(PacketHead head, byte[] body, int off, TapOutput out) {
    ControlRecord record = recordOf(head, body, off);
    if (record.byName() || head.bodyLength() == 0) {
      record.encode(out.reserve(ControlRecord.MAX_BYTES));
    } else {
      put(record, body, off, out);
      stats.add(Counter.INLINE_BODIES);
      stats.add(Counter.BYTES_INLINE, head.bodyLength());
    }
  }

  /** Puts a record and the body that goes along. */
  static void put(ControlRecord record, byte[] body, int off, TapOutput out) {
    int length = record.head().bodyLength();
    record.encode(out.reserve(ControlRecord.MAX_BYTES));
    out.reserve(length).put(body, off, length);
  }

  @Override
  public final int answered(ByteBuffer in, int from, int to) throws IOException {
    List<Long> asked = new ArrayList<>(0);
    int stock = frames.accept(in, from, to, asked::add);
    if (stock > 0) {
      acknowledged(in.duplicate().position(from).limit(from + stock));
    }
    for (long seqno : asked) {
      asked(seqno);
    }
    return stock;
  }
}

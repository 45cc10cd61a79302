package io.trunkline.hadoop.ndn.write;

import io.trunkline.hadoop.ndn.wire.ControlRecord;
import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.wire.PacketHead;
import io.trunkline.hadoop.wire.WriteOp;
import java.util.ArrayDeque;

/**
 * A write that comes in by name. The DataNode's input leaves the record of each packet here before
 * it hands the packet to stock code; the tap on the socket toward the next DataNode finds it when
 * stock code mirrors the packet, and passes the record on in place of the body.
 *
 * <p>Stock DataXceiver reads a write's header, opens the connection to the next DataNode and
 * mirrors the packets on one thread. So the tap finds the write by its thread, and no other
 * connection, whatever it claims to carry, can stand in for it.
 */
public final class Inflow implements AutoCloseable {
  private static final ThreadLocal<Inflow> OF_THREAD = new ThreadLocal<>();

  private final WriteOp op;
  private final Preamble preamble;
  private final ArrayDeque<ControlRecord> records = new ArrayDeque<>();
  private boolean relayed;
  private volatile boolean closed;

  private Inflow(WriteOp op, Preamble preamble) {
    this.op = op;
    this.preamble = preamble;
  }

  /**
   * A write begins to come in, read by this thread.
   *
   * @param op its header, as this DataNode got it
   * @param preamble its preamble
   * @return the write; close it when the connection ends
   */
  public static Inflow open(WriteOp op, Preamble preamble) {
    Inflow inflow = new Inflow(op, preamble);
    OF_THREAD.set(inflow);
    return inflow;
  }

  /**
   * Finds the write that a header toward the next DataNode belongs to.
   *
   * @param down the header, as this thread sends it on
   * @return the write, or null when the block does not come in by name
   */
  static Inflow upstreamOf(WriteOp down) {
    Inflow inflow = OF_THREAD.get();
    return inflow != null && !inflow.closed && inflow.isUpstreamOf(down) ? inflow : null;
  }

  private boolean isUpstreamOf(WriteOp down) {
    return op.pool().equals(down.pool())
        && op.block() == down.block()
        && op.genstamp() == down.genstamp()
        && op.targets() == down.targets() + 1;
  }

  Preamble preamble() {
    return preamble;
  }

  synchronized void relay(boolean on) {
    relayed = on;
    if (!on) {
      records.clear();
    }
  }

  /**
   * A packet is about to be handed to stock code.
   *
   * @param record its record
   */
  public synchronized void received(ControlRecord record) {
    if (relayed) {
      records.add(record);
    }
  }

  /** The record of a packet that stock code mirrors, or null when it is not known. */
  synchronized ControlRecord recordOf(PacketHead head) {
    while (!records.isEmpty()) {
      ControlRecord record = records.poll();
      if (record.head().same(head)) {
        return record;
      }
    }
    return null;
  }

  @Override
  public void close() {
    closed = true;
    relay(false);
    if (OF_THREAD.get() == this) {
      OF_THREAD.remove();
    }
  }
}

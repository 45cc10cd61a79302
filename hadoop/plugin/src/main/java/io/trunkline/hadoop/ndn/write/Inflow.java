package io.trunkline.hadoop.ndn.write;

import io.trunkline.hadoop.ndn.wire.ControlRecord;
import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.wire.PacketHead;
import io.trunkline.hadoop.wire.WriteOp;
import java.util.ArrayDeque;
import java.util.concurrent.ConcurrentHashMap;

/**
 * A write that comes in by name. The DataNode's input leaves the record of each packet here before
 * it hands the packet to stock code; the tap on the socket toward the next DataNode finds it when
 * stock code mirrors the packet, and passes the record on in place of the body.
 */
public final class Inflow implements AutoCloseable {
  /**
   * Tells writes apart. DataNodes of one pipeline may share a JVM, so the place in the pipeline is
   * part of it.
   */
  private record Key(String pool, long block, long genstamp, int targets) {}

  private static final ConcurrentHashMap<Key, Inflow> INFLOWS = new ConcurrentHashMap<>();

  private final Key key;
  private final Preamble preamble;
  private final ArrayDeque<ControlRecord> records = new ArrayDeque<>();
  private boolean relayed;

  private Inflow(Key key, Preamble preamble) {
    this.key = key;
    this.preamble = preamble;
  }

  /**
   * A write begins to come in.
   *
   * @param op its header, as this DataNode got it
   * @param preamble its preamble
   * @return the write; close it when the connection ends
   */
  public static Inflow open(WriteOp op, Preamble preamble) {
    Key key = new Key(op.pool(), op.block(), op.genstamp(), op.targets());
    Inflow inflow = new Inflow(key, preamble);
    INFLOWS.put(key, inflow);
    return inflow;
  }

  /**
   * Finds the write that a header toward the next DataNode belongs to.
   *
   * @param op the header, as it goes out
   * @return the write, or null when the block does not come in by name
   */
  static Inflow upstreamOf(WriteOp op) {
    return INFLOWS.get(new Key(op.pool(), op.block(), op.genstamp(), op.targets() + 1));
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
    INFLOWS.remove(key, this);
    relay(false);
  }
}

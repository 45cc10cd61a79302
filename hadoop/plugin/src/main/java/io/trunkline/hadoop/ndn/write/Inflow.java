package io.trunkline.hadoop.ndn.write;

import io.trunkline.hadoop.ndn.wire.ControlRecord;
import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.wire.BlockToken;
import io.trunkline.hadoop.wire.PacketHead;
import io.trunkline.hadoop.wire.WriteOp;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.Arrays;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

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
  /** The way back to whoever sends the write. */
  @FunctionalInterface
  public interface Upstream {
    /**
     * Asks for bodies on the connection.
     *
     * @param seqno sequence number of the first packet whose body is wanted
     * @throws IOException when the connection fails
     */
    void ask(long seqno) throws IOException;
  }

  /** The way on to the next DataNode. */
  @FunctionalInterface
  interface Downstream {
    /** Sends a body after its record by name has gone there. */
    void again(PacketHead head, byte[] body) throws IOException;
  }

  private static final Logger LOG = LoggerFactory.getLogger(Inflow.class);
  private static final ThreadLocal<Inflow> OF_THREAD = new ThreadLocal<>();

  private final WriteOp op;
  private final Preamble preamble;
  private final Upstream upstream;
  private final ArrayDeque<ControlRecord> records = new ArrayDeque<>();

  /** Null while the write is not passed on by name. */
  private Downstream downstream;

  private volatile boolean closed;

  private Inflow(WriteOp op, Preamble preamble, Upstream upstream) {
    this.op = op;
    this.preamble = preamble;
    this.upstream = upstream;
  }

  /**
   * A write begins to come in, read by this thread.
   *
   * @param op its header, as this DataNode got it
   * @param preamble its preamble
   * @param upstream the way back
   * @return the write; close it when the connection ends
   */
  public static Inflow open(WriteOp op, Preamble preamble, Upstream upstream) {
    Inflow inflow = new Inflow(op, preamble, upstream);
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

  /**
   * The block token of the write that this thread passes on, which the next DataNode is sent, too.
   *
   * @return the token, or null when there is no such write, or it has none
   */
  public static BlockToken tokenOfThread() {
    Inflow inflow = OF_THREAD.get();
    return inflow == null || inflow.closed || inflow.op.targets() == 0 ? null : inflow.op.token();
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

  /** The write is passed on by name from here on, or, with null, no more. */
  synchronized void relayTo(Downstream next) {
    downstream = next;
    if (next == null) {
      records.clear();
    }
  }

  /**
   * Asks whoever sends the write for bodies on the connection, for this DataNode or one further
   * down.
   *
   * @param seqno sequence number of the first packet whose body is wanted
   * @throws IOException when the connection fails
   */
  public void askUpstream(long seqno) throws IOException {
    upstream.ask(seqno);
  }

  /**
   * A packet is about to be handed to stock code.
   *
   * @param record its record
   */
  public synchronized void received(ControlRecord record) {
    if (downstream != null) {
      records.add(record);
    }
  }

  /**
   * The body of a packet that is being handed to stock code did not come by name: it is passed on
   * along with its record.
   *
   * @param record its record
   */
  public synchronized void cameInline(ControlRecord record) {
    records.removeLastOccurrence(record);
  }

  /**
   * A body that a DataNode further down asked for has come. Where that one takes nothing any more,
   * it gets none of them: stock code finds out as it mirrors the next packet or waits for an
   * acknowledgement, and knows whom to blame. To this write it is no failure.
   *
   * @param head its packet, which was handed to stock code before
   * @param body all of it
   */
  public void again(PacketHead head, byte[] body) {
    Downstream next;
    synchronized (this) {
      next = downstream;
    }
    try {
      if (next != null) {
        next.again(head, body);
      }
    } catch (IOException e) {
      LOG.debug("{}: a body that was asked for is not passed on", op.id(), e);
      synchronized (this) {
        downstream = downstream == next ? null : downstream;
      }
    }
  }

  /** The record of a packet that stock code mirrors, or null when it is to go along whole. */
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
    relayTo(null);
    if (op.token() != null) {
      // Stock code has taken its own copy of the header by now, or will not any more.
      op.token().wipe();
      Arrays.fill(op.header(), (byte) 0);
    }
    if (OF_THREAD.get() == this) {
      OF_THREAD.remove();
    }
  }
}

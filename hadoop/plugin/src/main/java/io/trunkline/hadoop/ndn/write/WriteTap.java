package io.trunkline.hadoop.ndn.write;

import io.trunkline.hadoop.ndn.wire.ControlRecord;
import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.ndn.wire.SegmentCut;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.wire.AckReader;
import io.trunkline.hadoop.wire.OpHeader;
import io.trunkline.hadoop.wire.PacketFramer;
import io.trunkline.hadoop.wire.PacketHead;
import io.trunkline.hadoop.wire.WriteOp;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sits where stock code writes to a DataNode's plug-in. It reads along until the op header is
 * whole, and from then on either lets everything pass, or turns each packet into a control record
 * whose body goes by name, in as many segments as it takes. It does no I/O: bytes in, control bytes
 * out, bodies to a {@link Publisher}.
 *
 * <pre>
 *   HEADER --not a write, or plan plain--> STOCK
 *      '-----plan produce or relay------> PACKETS
 * </pre>
 */
public final class WriteTap implements PacketFramer.Sink, AutoCloseable {
  /** A packet whose body was published, until it is acknowledged. */
  private record Published(long seqno, boolean block, long last) {}

  private enum State {
    HEADER,
    STOCK,
    PACKETS
  }

  private static final Logger LOG = LoggerFactory.getLogger(WriteTap.class);
  private static final int INITIAL_HEADER_BYTES = 1024;

  private final Planner planner;
  private final TransferStats stats = TransferStats.get();
  private final PacketFramer framer = new PacketFramer();
  private final AckReader acks = new AckReader();
  private final ConcurrentLinkedQueue<Published> unacknowledged = new ConcurrentLinkedQueue<>();
  private ByteBuffer header = ByteBuffer.allocate(INITIAL_HEADER_BYTES);
  private State state = State.HEADER;
  private WriteOp op;
  private Preamble preamble;
  private volatile Publisher publisher;
  private Inflow inflow;
  private boolean irregular;
  private long nextStreamSegment;
  private boolean ended;
  private ControlBuffer out;

  /**
   * A tap on a new connection.
   *
   * @param planner decides how a write travels
   */
  public WriteTap(Planner planner) {
    this.planner = planner;
  }

  /**
   * Whether this is no write by name: all of the connection passes as it is, to the stock port.
   *
   * @return true when {@link #accept} need not be called any more; before it is true, nothing has
   *     gone out
   */
  public boolean stock() {
    return state == State.STOCK;
  }

  /**
   * Takes bytes that stock code writes: up to the end of one packet at most, so that the caller can
   * send its record before it takes more.
   *
   * @param in the bytes; its position moves past those taken
   * @param control where the bytes go that are due on the connection
   * @throws IOException when the bytes are no packets
   */
  public void accept(ByteBuffer in, ControlBuffer control) throws IOException {
    out = control;
    switch (state) {
      case HEADER -> acceptHeader(in);
      case PACKETS -> framer.accept(in, this);
      case STOCK -> throw new IllegalStateException("the tap is off");
    }
  }

  private void acceptHeader(ByteBuffer in) throws IOException {
    if (header.remaining() < in.remaining()) {
      header.flip();
      header =
          ByteBuffer.allocate(Math.max(2 * header.capacity(), header.limit() + in.remaining()))
              .put(header);
    }
    header.put(in);
    ByteBuffer seen = header.duplicate().flip();
    switch (OpHeader.look(seen)) {
      case INCOMPLETE -> {
        // more will come
      }
      case OTHER -> plain();
      case WRITE -> begin(OpHeader.parseWrite(seen), seen);
    }
  }

  private void begin(WriteOp write, ByteBuffer rest) throws IOException {
    op = write;
    Plan plan =
        write.header().length > OpHeader.MAX_NAMED_BYTES ? new Plan.Plain() : planner.plan(write);
    if (plan instanceof Plan.Produce produce) {
      preamble = produce.preamble();
      publisher = produce.publisher();
    } else if (plan instanceof Plan.Relay relay) {
      inflow = relay.inflow();
      inflow.relay(true);
      preamble = inflow.preamble();
      stats.add(Counter.NAMED_RELAYS);
    } else {
      plain();
      return;
    }
    state = State.PACKETS;
    byte[] first = preamble.encode();
    out.room(first.length + write.header().length).put(first).put(write.header());
    header = null;
    while (rest.hasRemaining()) {
      framer.accept(rest, this);
    }
  }

  private void plain() {
    state = State.STOCK;
    header.flip();
    out.room(header.remaining()).put(header);
    header = null;
  }

  @Override
  public void packet(PacketHead head, byte[] body, int off) throws IOException {
    ended |= head.last();
    ControlRecord record = inflow != null ? relayed(head) : published(head, body, off);
    record.encode(out.room(ControlRecord.MAX_BYTES));
    if (record.kind() == ControlRecord.INLINE && head.bodyLength() > 0) {
      out.room(head.bodyLength()).put(body, off, head.bodyLength());
      stats.add(Counter.INLINE_BODIES);
      stats.add(Counter.BYTES_INLINE, head.bodyLength());
    }
  }

  private ControlRecord relayed(PacketHead head) {
    ControlRecord record = inflow.recordOf(head);
    return record != null ? record : inline(head);
  }

  private ControlRecord published(PacketHead head, byte[] body, int off) {
    int segmentBytes = preamble.segmentBytes();
    if (!SegmentCut.fits(head, op.checksum(), segmentBytes)) {
      return inline(head);
    }
    try {
      SegmentCut cut = new SegmentCut(head, op.checksum(), segmentBytes);
      boolean whole = wholeSegments(head);
      long first = whole ? head.offset() / segmentBytes : nextStreamSegment;
      if (!whole) {
        irregular = true;
        nextStreamSegment += cut.count();
      }
      for (int i = 0; i < cut.count(); i++) {
        boolean more = i + 1 < cut.count();
        if (whole) {
          publisher.block(first + i, cut.piece(i), body, off, more);
        } else {
          publisher.stream(first + i, cut.piece(i), body, off, more);
        }
      }
      stats.add(Counter.SEGMENTS_PUBLISHED, cut.count());
      stats.add(Counter.BYTES_PUBLISHED, head.bodyLength());
      unacknowledged.add(new Published(head.seqno(), whole, first + cut.count() - 1));
      byte kind = whole ? ControlRecord.BLOCK_SEGMENT : ControlRecord.STREAM_SEGMENT;
      return new ControlRecord(kind, first, head);
    } catch (IOException e) {
      LOG.warn("{}: packet goes by the control connection: {}", op.id(), e.getMessage());
      return inline(head);
    }
  }

  /**
   * Whether a packet is just what the block's segments of that place will hold for ever: full ones,
   * or those that end a full block. After a packet that was cut elsewhere none is.
   */
  private boolean wholeSegments(PacketHead head) {
    int segmentBytes = preamble.segmentBytes();
    return !irregular
        && head.offset() % segmentBytes == 0
        && head.offset() / segmentBytes <= 0xFFFFFFFFL
        && (head.dataLength() % segmentBytes == 0
            || head.offset() + head.dataLength() == op.blockBytes());
  }

  private static ControlRecord inline(PacketHead head) {
    return new ControlRecord(ControlRecord.INLINE, 0, head);
  }

  /**
   * Bytes have come back on the connection.
   *
   * @param bytes the bytes
   */
  public void answered(ByteBuffer bytes) {
    Publisher named = publisher;
    if (named == null) {
      return;
    }
    named.progressed();
    synchronized (acks) {
      long seqno = acks.accept(bytes);
      if (seqno != AckReader.NONE) {
        acknowledged(named, seqno);
      }
    }
  }

  private void acknowledged(Publisher named, long seqno) {
    long block = -1;
    long stream = -1;
    Published oldest;
    while ((oldest = unacknowledged.peek()) != null && oldest.seqno() <= seqno) {
      unacknowledged.remove();
      if (oldest.block()) {
        block = oldest.last();
      } else {
        stream = oldest.last();
      }
    }
    if (block >= 0) {
      named.blockAcknowledged(block);
    }
    if (stream >= 0) {
      named.streamAcknowledged(stream);
    }
  }

  @Override
  public void close() {
    if (publisher != null) {
      publisher.close(ended);
    }
    if (inflow != null) {
      inflow.relay(false);
    }
  }

  /**
   * What the tap is doing, for logs.
   *
   * @return the state and the write
   */
  @Override
  public String toString() {
    return state + (op == null ? "" : " " + op.id() + " " + op.stage());
  }
}

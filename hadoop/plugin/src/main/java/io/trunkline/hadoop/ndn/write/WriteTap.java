package io.trunkline.hadoop.ndn.write;

import io.trunkline.hadoop.ndn.NoRoomException;
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
import java.util.ArrayDeque;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sits where stock code writes to a DataNode's plug-in. It reads along until the op header is
 * whole, and from then on either lets everything pass, or turns each packet into a control record
 * whose body goes by name, in as many segments as it takes. It does no I/O: bytes in, control bytes
 * out, bodies to a {@link Publisher}. Where a DataNode cannot get bodies by name, they go down the
 * connection again.
 *
 * <pre>
 *   HEADER --not a write, or plan plain--> STOCK
 *      |-----plan relay------------------> RELAY
 *      '-----plan produce----------------> BLOCK --a packet is cut elsewhere--> STREAM
 *                                            '--a DataNode asks--> INLINE <-------'
 * </pre>
 */
public final class WriteTap implements PacketFramer.Sink, AutoCloseable {
  /** A packet whose body was published, until it is acknowledged. */
  private record Published(PacketHead head, boolean block, long first, SegmentCut cut) {
    long last() {
      return first + cut.count() - 1;
    }
  }

  /** The connection that the tap sits on. */
  @FunctionalInterface
  public interface Connection {
    /**
     * Sends a record and a body, whatever stock code is doing.
     *
     * @param record the record
     * @param body all of the body
     * @throws IOException when the connection fails
     */
    void send(ControlRecord record, byte[] body) throws IOException;
  }

  private enum State {
    HEADER,
    STOCK,
    /** Packets come in by name, or inline, and go on likewise. */
    RELAY,
    /** So far packets are whole segments of the block. */
    BLOCK,
    /** Packets are segments of this writer's stream. */
    STREAM,
    /** Nothing more is published: a DataNode does not get it. */
    INLINE
  }

  private static final Logger LOG = LoggerFactory.getLogger(WriteTap.class);
  private static final int INITIAL_HEADER_BYTES = 1024;

  private final Planner planner;
  private final TransferStats stats = TransferStats.get();
  private final PacketFramer framer = new PacketFramer();
  private final AckReader acks = new AckReader();
  private final ConcurrentLinkedQueue<Published> unacknowledged = new ConcurrentLinkedQueue<>();

  /** What is to be sent again. */
  private final ArrayDeque<Published> again = new ArrayDeque<>();

  /** Sequence number of the first packet of which a DataNode has asked for the body. */
  private long againFrom = Long.MAX_VALUE;

  private Connection connection;
  private ByteBuffer header = ByteBuffer.allocate(INITIAL_HEADER_BYTES);
  private volatile State state = State.HEADER;
  private WriteOp op;
  private Preamble preamble;
  private volatile Publisher publisher;
  private volatile Inflow inflow;
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
   * Says what the tap sits on, before anything else.
   *
   * @param under the connection
   */
  public void attach(Connection under) {
    connection = under;
  }

  /**
   * Whether packets go as control records, and what comes back is in frames.
   *
   * @return false while the op header is not whole, and for all that passes as it is
   */
  public boolean named() {
    return state != State.HEADER && state != State.STOCK;
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
      case STOCK -> throw new IllegalStateException("the tap is off");
      case RELAY, BLOCK, STREAM, INLINE -> framer.accept(in, this);
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
      state = State.BLOCK;
    } else if (plan instanceof Plan.Relay relay) {
      inflow = relay.inflow();
      inflow.relayTo((head, body) -> connection.send(ControlRecord.again(head), body));
      preamble = inflow.preamble();
      state = State.RELAY;
      stats.add(Counter.NAMED_RELAYS);
    } else {
      plain();
      return;
    }
    byte[] first = preamble.encode();
    out.reserve(first.length + write.header().length).put(first).put(write.header());
    header = null;
    while (rest.hasRemaining()) {
      framer.accept(rest, this);
    }
  }

  private void plain() {
    state = State.STOCK;
    header.flip();
    out.reserve(header.remaining()).put(header);
    header = null;
  }

  @Override
  public void packet(PacketHead head, byte[] body, int off) throws IOException {
    ended |= head.last();
    ControlRecord record = state == State.RELAY ? relayed(head) : published(head, body, off);
    if (record.byName() || head.bodyLength() == 0) {
      record.encode(out.reserve(ControlRecord.MAX_BYTES));
    } else {
      out.put(record, body, off);
      stats.add(Counter.INLINE_BODIES);
      stats.add(Counter.BYTES_INLINE, head.bodyLength());
    }
  }

  private ControlRecord relayed(PacketHead head) {
    ControlRecord record = inflow.recordOf(head);
    return record != null ? record : ControlRecord.inline(head);
  }

  private ControlRecord published(PacketHead head, byte[] body, int off) {
    int segmentBytes = preamble.segmentBytes();
    if (state == State.INLINE || !SegmentCut.fits(head, op.checksum(), segmentBytes)) {
      return ControlRecord.inline(head);
    }
    try {
      SegmentCut cut = new SegmentCut(head, op.checksum(), segmentBytes);
      boolean whole = wholeSegments(head);
      long first = whole ? head.offset() / segmentBytes : nextStreamSegment;
      if (!whole) {
        state = State.STREAM;
        nextStreamSegment += cut.count();
      }
      byte[] digests = new byte[cut.count() * ControlRecord.DIGEST_BYTES];
      for (int i = 0; i < cut.count(); i++) {
        int digestAt = i * ControlRecord.DIGEST_BYTES;
        boolean more = i + 1 < cut.count();
        if (whole) {
          publisher.block(first + i, cut.piece(i), body, off, more, digests, digestAt);
        } else {
          publisher.stream(first + i, cut.piece(i), body, off, more, digests, digestAt);
        }
      }
      stats.add(Counter.SEGMENTS_PUBLISHED, cut.count());
      stats.add(Counter.BYTES_PUBLISHED, head.bodyLength());
      unacknowledged.add(new Published(head, whole, first, cut));
      byte kind = whole ? ControlRecord.BLOCK_SEGMENT : ControlRecord.STREAM_SEGMENT;
      return new ControlRecord(kind, first, head, digests);
    } catch (NoRoomException e) {
      LOG.debug("{}: packet sent on the control connection: {}", op.id(), e.getMessage());
      return ControlRecord.inline(head);
    } catch (IOException e) {
      LOG.warn("{}: packet sent on the control connection: {}", op.id(), e.getMessage());
      return ControlRecord.inline(head);
    }
  }

  /**
   * Whether a packet is just what the block's segments of that place will hold for ever: full ones,
   * or those that end a full block. After a packet that was cut elsewhere none is.
   */
  private boolean wholeSegments(PacketHead head) {
    int segmentBytes = preamble.segmentBytes();
    return state == State.BLOCK
        && head.offset() % segmentBytes == 0
        && head.offset() / segmentBytes <= 0xFFFFFFFFL
        && (head.dataLength() % segmentBytes == 0
            || head.offset() + head.dataLength() == op.blockBytes());
  }

  /**
   * A DataNode of the pipeline asks for bodies on the connection: whoever sends a write that comes
   * in by name is asked for them.
   *
   * @param seqno sequence number of the first packet whose body is wanted
   * @return false when the write does not come in by name
   * @throws IOException when it cannot be asked
   */
  public boolean asksFurther(long seqno) throws IOException {
    if (state != State.RELAY) {
      return false;
    }
    inflow.askUpstream(seqno);
    return true;
  }

  /**
   * A DataNode of the pipeline asks for bodies that were published here: they are to be sent from
   * what is kept, and all that follow go inline. To be called as {@link #accept} is, one at a time.
   *
   * @param seqno sequence number of the first packet whose body is wanted
   */
  public void asked(long seqno) {
    switch (state) {
      case BLOCK, STREAM -> {
        LOG.info(
            "{}: a DataNode gets no Data for a packet; the rest of the block is sent on the control"
                + " connection",
            op.id());
        state = State.INLINE;
        publisher.starved();
      }
      case INLINE -> {
        if (seqno >= againFrom) {
          return;
        }
      }
      case HEADER, STOCK, RELAY -> {
        return;
      }
    }
    for (Published packet : unacknowledged) {
      if (packet.head().seqno() >= seqno && packet.head().seqno() < againFrom) {
        again.add(packet);
      }
    }
    againFrom = seqno;
  }

  /**
   * Writes the next record and body of those that were asked for.
   *
   * @param control where they go
   * @return false when none is left
   * @throws IOException when they cannot be had
   */
  public boolean sendAgain(ControlBuffer control) throws IOException {
    Published packet;
    while ((packet = again.poll()) != null) {
      PacketHead head = packet.head();
      byte[] body = new byte[head.bodyLength()];
      boolean kept = true;
      for (int i = 0; i < packet.cut().count() && kept; i++) {
        long segment = packet.first() + i;
        kept = publisher.kept(packet.block(), segment, packet.cut().piece(i), body);
      }
      if (kept) {
        control.put(ControlRecord.again(head), body, 0);
        stats.add(Counter.BODIES_AGAIN);
        stats.add(Counter.BYTES_INLINE, body.length);
        return true;
      }
      LOG.debug(
          "{}: packet {} cannot be sent again, its segments are no longer retained",
          op.id(),
          head.seqno());
    }
    return false;
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
    while ((oldest = unacknowledged.peek()) != null && oldest.head().seqno() <= seqno) {
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
      inflow.relayTo(null);
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

package io.trunkline.hadoop.ndn.write;

import io.trunkline.hadoop.ndn.NoRoomException;
import io.trunkline.hadoop.ndn.wire.ControlRecord;
import io.trunkline.hadoop.ndn.wire.SegmentCut;
import io.trunkline.hadoop.ndn.write.Unacknowledged.Published;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.tap.TapConnection;
import io.trunkline.hadoop.tap.TapOutput;
import io.trunkline.hadoop.wire.AckReader;
import io.trunkline.hadoop.wire.PacketHead;
import io.trunkline.hadoop.wire.WriteOp;
import java.io.IOException;
import java.nio.ByteBuffer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Bodies are published here, each in as many segments as it takes.
 *
 * <pre>
 *   BLOCK --a packet is cut elsewhere--> STREAM
 *     '--a DataNode asks--> INLINE <-------'
 * </pre>
 */
final class PublishedWrite extends NamedWrite {
  private enum State {
    /** So far packets are whole segments of the block. */
    BLOCK,
    /** Packets are segments of this writer's stream. */
    STREAM,
    /** Nothing more is published: a DataNode does not get it. */
    INLINE
  }

  private static final Logger LOG = LoggerFactory.getLogger(PublishedWrite.class);

  private final WriteOp op;
  private final int segmentBytes;
  private final int inlineBytes;
  private final Publisher publisher;
  private final TapConnection connection;
  private final TransferStats stats = TransferStats.get();
  private final AckReader acks = new AckReader();
  private final Unacknowledged unacknowledged = new Unacknowledged();
  private State state = State.BLOCK;
  private long nextStreamSegment;

  /** Whether the packet that ends the block has been written. */
  private volatile boolean ended;

  /**
   * A write.
   *
   * @param op what its header says
   * @param plan how it is published
   * @param connection the connection to the first DataNode
   */
  PublishedWrite(WriteOp op, Plan.Produce plan, TapConnection connection) {
    this.op = op;
    this.segmentBytes = plan.preamble().segmentBytes();
    this.inlineBytes = plan.inlineBytes();
    this.publisher = plan.publisher();
    this.connection = connection;
  }

  @Override
  ControlRecord recordOf(PacketHead head, byte[] body, int off) {
    if (head.last()) {
      ended = true;
    }
    if (state == State.INLINE
        || isSmall(head)
        || !SegmentCut.fits(head, op.checksum(), segmentBytes)) {
      return ControlRecord.inline(head);
    }
    try {
      return published(head, body, off);
    } catch (NoRoomException e) {
      LOG.debug("{}: packet sent on the control connection: {}", op.id(), e.getMessage());
      return ControlRecord.inline(head);
    } catch (IOException e) {
      LOG.warn("{}: packet sent on the control connection: {}", op.id(), e.getMessage());
      return ControlRecord.inline(head);
    }
  }

  /**
   * Whether a body costs more by name than it saves on the links: each DataNode would ask for it
   * after its record has come, a round trip later. What may be the end of a block that is otherwise
   * published under its own name is published, too: caches and the block's key then serve readers.
   */
  private boolean isSmall(PacketHead head) {
    boolean mayEndBlock =
        state == State.BLOCK && head.offset() > 0 && head.offset() % segmentBytes == 0;
    return head.dataLength() < inlineBytes && !mayEndBlock;
  }

  private ControlRecord published(PacketHead head, byte[] body, int off) throws IOException {
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
  }

  /**
   * Whether a packet is just what the block's segments of that place will hold for ever: full ones,
   * or those that end a full block. After a packet that was cut elsewhere none is.
   */
  private boolean wholeSegments(PacketHead head) {
    return state == State.BLOCK
        && head.offset() % segmentBytes == 0
        && head.offset() / segmentBytes <= 0xFFFFFFFFL
        && (head.dataLength() % segmentBytes == 0
            || head.offset() + head.dataLength() == op.blockBytes());
  }

  @Override
  void acknowledged(ByteBuffer stock) {
    synchronized (acks) {
      long seqno = acks.accept(stock);
      if (seqno != AckReader.NONE) {
        unacknowledged.acknowledged(seqno, publisher);
      }
    }
  }

  /** Bodies are sent from what is kept, and all that follow go inline. */
  @Override
  void asked(long seqno) throws IOException {
    connection.send(
        out -> {
          goInline();
          unacknowledged.ask(seqno);
          return putAgain(out);
        });
  }

  private void goInline() {
    if (state == State.INLINE) {
      return;
    }
    LOG.info(
        "{}: a DataNode gets no Data for a packet; the rest of the block is sent on the control"
            + " connection",
        op.id());
    state = State.INLINE;
    publisher.starved();
  }

  /**
   * Puts the next record and body of those that were asked for; returns false when none is left.
   */
  private boolean putAgain(TapOutput out) throws IOException {
    Published packet;
    while ((packet = unacknowledged.nextAgain()) != null) {
      PacketHead head = packet.head();
      byte[] body = new byte[head.bodyLength()];
      boolean kept = true;
      for (int i = 0; i < packet.cut().count() && kept; i++) {
        long segment = packet.first() + i;
        kept = publisher.kept(packet.block(), segment, packet.cut().piece(i), body);
      }
      if (kept) {
        put(ControlRecord.again(head), body, 0, out);
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

  @Override
  public void close() {
    publisher.close(ended);
  }
}

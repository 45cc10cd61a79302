package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.ndn.Names;
import io.trunkline.hadoop.ndn.NdnException;
import io.trunkline.hadoop.ndn.NoRoomException;
import io.trunkline.hadoop.ndn.UnverifiedException;
import io.trunkline.hadoop.ndn.wire.ControlRecord;
import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.ndn.wire.SegmentCut;
import io.trunkline.hadoop.ndn.wire.SegmentCut.Piece;
import io.trunkline.hadoop.ndn.wire.SegmentHeader;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.wire.WriteOp;
import java.io.Closeable;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.SocketTimeoutException;
import java.util.concurrent.TimeUnit;
import java.util.function.IntSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Gets the packet bodies of one write that comes in by name, and hands out none that is not what
 * its packet's record says; the library has verified checksums and digest, or opened the seal, by
 * then. What does not come for a while, or comes as something else however often it is asked for,
 * is asked for on the control connection.
 *
 * <pre>
 *   BY NAME --a quarter of the time, or nobody has it--> ASKED --comes again, or by name--> (body)
 *      '----segments come--> (body)                        '--time over--> (failure)
 * </pre>
 *
 * A wait also ends when the thread is interrupted or the control connection has ended.
 */
final class BodyPuller implements Closeable {
  /** Makes the puller of a write. */
  @FunctionalInterface
  interface Maker {
    BodyPuller make(WriteOp op, Preamble preamble, ControlRecords records);
  }

  private static final Logger LOG = LoggerFactory.getLogger(BodyPuller.class);

  /** How long a wait goes on before the thread and the connection are looked at again. */
  private static final int SLICE_MS = 50;

  /** The same while a body may come on the connection at any time. */
  private static final int ASKED_SLICE_MS = 5;

  /** A stream that fails for good is opened again so often, less one, before it is given up. */
  private static final int MAX_FAILURES = 3;

  /** The part of the time that a body may take after which it is asked for on the connection. */
  private static final int PATIENCE = 4;

  private final WriteOp op;
  private final Preamble preamble;
  private final ControlRecords records;
  private final SegmentSource.Opener opener;
  private final int pullTimeoutMs;
  private final IntSupplier readTimeoutMs;
  private final TransferStats stats = TransferStats.get();
  private final byte[] segmentHeader = new byte[SegmentHeader.BYTES];
  private final SegmentSource[] sources = new SegmentSource[2];
  private boolean closed;

  /**
   * A puller.
   *
   * @param op the write
   * @param preamble names the block
   * @param records those of the control connection
   * @param opener opens streams of segments
   * @param pullTimeoutMs how long a body may take
   * @param readTimeoutMs stock read timeout of the connection at the time, 0 for none
   */
  BodyPuller(
      WriteOp op,
      Preamble preamble,
      ControlRecords records,
      SegmentSource.Opener opener,
      int pullTimeoutMs,
      IntSupplier readTimeoutMs) {
    this.op = op;
    this.preamble = preamble;
    this.records = records;
    this.opener = opener;
    this.pullTimeoutMs = pullTimeoutMs;
    this.readTimeoutMs = readTimeoutMs;
  }

  /** How long one body may take, and what has been tried to get it. */
  private final class Wait {
    final ControlRecord record;
    final long limitMs;
    final long asksAt;
    final long deadline;
    boolean byName = true;
    int failures;

    Wait(ControlRecord record) {
      this.record = record;
      int readTimeout = readTimeoutMs.getAsInt();
      limitMs = readTimeout > 0 ? Math.min(readTimeout, pullTimeoutMs) : pullTimeoutMs;
      long now = System.nanoTime();
      asksAt = now + TimeUnit.MILLISECONDS.toNanos(limitMs) / PATIENCE;
      deadline = now + TimeUnit.MILLISECONDS.toNanos(limitMs);
    }

    /** Asks on the connection for this body and all that follow. */
    void ask(String why) throws IOException {
      if (records.ask(record.head().seqno())) {
        stats.add(Counter.INLINE_ASKED);
        LOG.info("{}; requested on the control connection", why);
      }
    }

    void failed(long segment, NdnException e) throws IOException {
      stats.add(Counter.PULL_RETRIES);
      drop(record.kind());
      if (e instanceof UnverifiedException
          || e instanceof NoRoomException
          || ++failures == MAX_FAILURES) {
        byName = false;
        ask(what(segment) + ": " + e.getMessage());
      } else {
        LOG.info("{}: {}; requested again", what(segment), e.getMessage());
        pause(SLICE_MS);
      }
    }

    void check(long segment) throws IOException {
      if (Thread.currentThread().isInterrupted()) {
        throw new InterruptedIOException(what(segment) + ": interrupted");
      }
      long now = System.nanoTime();
      if (now - deadline >= 0) {
        stats.add(Counter.PULL_TIMEOUTS);
        throw new SocketTimeoutException(what(segment) + ": no Data within " + limitMs + " ms");
      }
      if (now - asksAt >= 0) {
        ask(what(segment) + ": no Data yet");
      }
    }

    String what(long segment) {
      return op.id()
          + (record.kind() == ControlRecord.BLOCK_SEGMENT ? " segment " : " stream segment ")
          + segment;
    }
  }

  /**
   * Gets one body.
   *
   * @param record the packet's record, the one that was read last
   * @param to where checksums and data go; has room for the body
   * @param off where in it
   * @return false when the body came on the connection and not by name
   * @throws IOException when the body cannot be had, or is not what the record says
   */
  boolean pull(ControlRecord record, byte[] to, int off) throws IOException {
    SegmentCut cut = new SegmentCut(record.head(), op.checksum(), preamble.segmentBytes());
    if (cut.count() * ControlRecord.DIGEST_BYTES != record.digests().length) {
      throw new IOException(
          op.id()
              + ": record of "
              + cut.count()
              + " segments has digests of "
              + record.digests().length
              + " bytes");
    }
    if (record.kind() == ControlRecord.STREAM_SEGMENT) {
      // No packet after one that was cut elsewhere is of whole segments of the block.
      drop(ControlRecord.BLOCK_SEGMENT);
    }
    Wait wait = new Wait(record);
    for (int i = 0; i < cut.count(); i++) {
      byte[] again = await(wait, i, cut, to, off);
      if (again != null) {
        if (again.length != record.head().bodyLength()) {
          throw new IOException(op.id() + ": a body of another length came again");
        }
        System.arraycopy(again, 0, to, off, again.length);
        return false;
      }
    }
    stats.add(Counter.SEGMENTS_PULLED, cut.count());
    stats.add(Counter.BYTES_PULLED, record.head().bodyLength());
    return true;
  }

  /** Returns the whole body when it came on the connection, and null when the segment has come. */
  private byte[] await(Wait wait, int index, SegmentCut cut, byte[] to, int off)
      throws IOException {
    ControlRecord record = wait.record;
    long segment = record.number() + index;
    long newest = record.number() + cut.count() - 1;
    boolean first = true;
    while (true) {
      if (!first || records.asked()) {
        byte[] again = records.cameAgain(record.head().seqno());
        if (again != null) {
          return again;
        }
        if (records.hasEnded()) {
          throw new IOException(
              wait.what(segment) + ": given up, the control connection has ended");
        }
        wait.check(segment);
      }
      first = false;
      int sliceMs = records.asked() ? ASKED_SLICE_MS : SLICE_MS;
      if (!wait.byName) {
        pause(sliceMs);
        continue;
      }
      try {
        SegmentSource source = source(record.kind(), segment);
        source.known(newest);
        Piece piece = cut.piece(index);
        int digestAt = index * ControlRecord.DIGEST_BYTES;
        if (source.take(
            segment, segmentHeader, piece, to, off, record.digests(), digestAt, sliceMs)) {
          check(wait, segment, piece);
          return null;
        }
      } catch (NdnException e) {
        wait.failed(segment, e);
      }
    }
  }

  private void check(Wait wait, long segment, Piece piece) throws IOException {
    SegmentHeader header =
        SegmentHeader.decode(segmentHeader, piece.sumsLength() + piece.dataLength());
    if (!header.equals(piece.header())) {
      throw new IOException(wait.what(segment) + " is " + header + ", not " + piece.header());
    }
  }

  private static void pause(int milliseconds) {
    try {
      Thread.sleep(milliseconds);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private synchronized SegmentSource source(byte kind, long first) throws IOException {
    if (closed) {
      throw new IOException(op.id() + ": the connection has been closed");
    }
    int index = kind - ControlRecord.BLOCK_SEGMENT;
    if (sources[index] == null) {
      byte[] key = preamble.key() == null ? null : preamble.key().bytes();
      String segments = Names.segments(preamble.name(), key);
      boolean stream = kind == ControlRecord.STREAM_SEGMENT;
      String prefix = stream ? Names.stream(segments, preamble.nonce()) : segments;
      sources[index] = opener.open(prefix, stream, first);
    }
    return sources[index];
  }

  private synchronized void drop(byte kind) {
    int index = kind - ControlRecord.BLOCK_SEGMENT;
    if (sources[index] != null) {
      sources[index].close();
      sources[index] = null;
    }
  }

  @Override
  public synchronized void close() {
    closed = true;
    for (int i = 0; i < sources.length; i++) {
      if (sources[i] != null) {
        sources[i].close();
        sources[i] = null;
      }
    }
  }
}

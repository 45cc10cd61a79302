package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.ndn.Names;
import io.trunkline.hadoop.ndn.NdnException;
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
import org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.OpWriteBlockProto.BlockConstructionStage;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Gets the packet bodies of one write that comes in by name, and hands out none that is not what
 * its packet's header says; the library has verified its checksums by then. A wait ends when the
 * segment has come, the time is over, the thread is interrupted, or the control connection has
 * ended.
 */
final class BodyPuller implements Closeable {
  /** Makes the puller of a write. */
  @FunctionalInterface
  interface Maker {
    BodyPuller make(WriteOp op, Preamble preamble, ControlInput control);
  }

  private static final Logger LOG = LoggerFactory.getLogger(BodyPuller.class);

  /** How long a wait goes on before the thread and the connection are looked at again. */
  private static final int SLICE_MS = 50;

  /** A stream that fails for good is opened again so often, less one, before its write fails. */
  private static final int MAX_FAILURES = 3;

  private final WriteOp op;
  private final Preamble preamble;
  private final ControlInput control;
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
   * @param control the control connection
   * @param opener opens streams of segments
   * @param pullTimeoutMs how long a segment may take
   * @param readTimeoutMs stock read timeout of the connection at the time, 0 for none
   */
  BodyPuller(
      WriteOp op,
      Preamble preamble,
      ControlInput control,
      SegmentSource.Opener opener,
      int pullTimeoutMs,
      IntSupplier readTimeoutMs) {
    this.op = op;
    this.preamble = preamble;
    this.control = control;
    this.opener = opener;
    this.pullTimeoutMs = pullTimeoutMs;
    this.readTimeoutMs = readTimeoutMs;
    if (op.stage() == BlockConstructionStage.PIPELINE_SETUP_CREATE) {
      askAhead();
    }
  }

  /** A new block begins with segment 0: it can be asked for before the first record has come. */
  private void askAhead() {
    try {
      source(ControlRecord.BLOCK_SEGMENT, 0);
    } catch (IOException e) {
      LOG.debug("{}: not asked ahead: {}", op.id(), e.getMessage());
    }
  }

  /**
   * Gets one body.
   *
   * @param record the packet's record
   * @param to where checksums and data go; has room for the body
   * @param off where in it
   * @throws IOException when the body cannot be had, or is not what the record says
   */
  void pull(ControlRecord record, byte[] to, int off) throws IOException {
    SegmentCut cut = new SegmentCut(record.head(), op.checksum(), preamble.segmentBytes());
    long newest = record.number() + cut.count() - 1;
    int readTimeout = readTimeoutMs.getAsInt();
    long limitMs = readTimeout > 0 ? Math.min(readTimeout, pullTimeoutMs) : pullTimeoutMs;
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(limitMs);
    for (int i = 0; i < cut.count(); i++) {
      Piece piece = cut.piece(i);
      await(record, record.number() + i, newest, piece, to, off, limitMs, deadline);
      SegmentHeader header =
          SegmentHeader.decode(segmentHeader, piece.sumsLength() + piece.dataLength());
      if (!header.equals(piece.header())) {
        throw new IOException(
            what(record, record.number() + i) + " is " + header + ", not " + piece.header());
      }
    }
    stats.add(Counter.SEGMENTS_PULLED, cut.count());
    stats.add(Counter.BYTES_PULLED, record.head().bodyLength());
  }

  private void await(
      ControlRecord record,
      long segment,
      long newest,
      Piece piece,
      byte[] to,
      int off,
      long limitMs,
      long deadline)
      throws IOException {
    int failures = 0;
    while (true) {
      try {
        SegmentSource source = source(record.kind(), segment);
        source.known(newest);
        if (source.take(segment, segmentHeader, piece, to, off, SLICE_MS)) {
          return;
        }
      } catch (NdnException e) {
        stats.add(Counter.PULL_RETRIES);
        drop(record.kind());
        if (++failures == MAX_FAILURES) {
          throw e;
        }
        LOG.info("{}: {}; asked for again", what(record, segment), e.getMessage());
        pause();
      }
      if (Thread.interrupted()) {
        Thread.currentThread().interrupt();
        throw new InterruptedIOException(what(record, segment) + ": interrupted");
      }
      if (control.hasEnded()) {
        throw new IOException(
            what(record, segment) + ": given up, the control connection has ended");
      }
      if (System.nanoTime() - deadline >= 0) {
        stats.add(Counter.PULL_TIMEOUTS);
        throw new SocketTimeoutException(
            what(record, segment) + ": not come in " + limitMs + " ms");
      }
    }
  }

  private static void pause() {
    try {
      Thread.sleep(SLICE_MS);
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
      String prefix =
          kind == ControlRecord.BLOCK_SEGMENT
              ? preamble.name()
              : Names.stream(preamble.name(), preamble.nonce());
      sources[index] = opener.open(prefix, first);
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

  private String what(ControlRecord record, long segment) {
    return op.id()
        + (record.kind() == ControlRecord.BLOCK_SEGMENT ? " segment " : " stream segment ")
        + segment;
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

package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.ndn.Names;
import io.trunkline.hadoop.ndn.NdnException;
import io.trunkline.hadoop.ndn.wire.ControlRecord;
import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.ndn.wire.SegmentHeader;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.wire.PacketHead;
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
    int expected = record.head().bodyLength();
    int length = await(record, to, off, expected);
    check(record.head(), length);
    stats.add(Counter.SEGMENTS_PULLED);
    stats.add(Counter.BYTES_PULLED, length);
  }

  private int await(ControlRecord record, byte[] to, int off, int max) throws IOException {
    int readTimeout = readTimeoutMs.getAsInt();
    long limitMs = readTimeout > 0 ? Math.min(readTimeout, pullTimeoutMs) : pullTimeoutMs;
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(limitMs);
    int failures = 0;
    while (true) {
      try {
        int length =
            source(record.kind(), record.number())
                .take(record.number(), segmentHeader, to, off, max, SLICE_MS);
        if (length >= 0) {
          return length;
        }
      } catch (NdnException e) {
        stats.add(Counter.PULL_RETRIES);
        drop(record.kind());
        if (++failures == MAX_FAILURES) {
          throw e;
        }
        LOG.info("{}: {}; asked for again", what(record), e.getMessage());
        pause();
      }
      if (Thread.interrupted()) {
        Thread.currentThread().interrupt();
        throw new InterruptedIOException(what(record) + ": interrupted");
      }
      if (control.hasEnded()) {
        throw new IOException(what(record) + ": given up, the control connection has ended");
      }
      if (System.nanoTime() - deadline >= 0) {
        stats.add(Counter.PULL_TIMEOUTS);
        throw new SocketTimeoutException(what(record) + ": not come in " + limitMs + " ms");
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

  private void check(PacketHead head, int length) throws IOException {
    SegmentHeader header = SegmentHeader.decode(segmentHeader, length);
    if (length != head.bodyLength()
        || header.dataLength() != head.dataLength()
        || header.offset() != head.offset()
        || header.checksumType() != op.checksum().getChecksumType().id
        || header.bytesPerChecksum() != op.checksum().getBytesPerChecksum()) {
      throw new IOException(op.id() + ": segment " + header + " is not the body of packet " + head);
    }
  }

  private String what(ControlRecord record) {
    return op.id()
        + (record.kind() == ControlRecord.BLOCK_SEGMENT ? " segment " : " stream segment ")
        + record.number();
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

package io.trunkline.hadoop.ndn.write;

import io.trunkline.hadoop.conf.TransportNames;
import io.trunkline.hadoop.ndn.Names;
import io.trunkline.hadoop.ndn.Native;
import io.trunkline.hadoop.ndn.NdnException;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.ndn.NoRoomException;
import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.ndn.wire.SegmentCut.Piece;
import io.trunkline.hadoop.ndn.wire.SegmentHeader;
import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.StatsFile;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.transport.PlaneHealth.Failure;
import java.io.IOException;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Publishes a write through the JVM's forwarder. A write for which a DataNode had to ask for bodies
 * on the connection has failed as far as names are concerned, however it ends; one that comes to
 * its end without that has succeeded. How long it was silent says nothing: a writer may be idle.
 */
final class NativePublisher implements Publisher {
  /** How long a write that broke off stays answerable; its DataNodes let go of it at once. */
  private static final long LINGER_MS = 1000;

  /** Kinds of streams. */
  private static final int BLOCK = 0;

  private static final int STREAM = 1;

  private static final long NO_PRODUCER = 0;

  /** The node has no room for another producer of this write: it is not asked again. */
  private static final long REFUSED = -1;

  private final NdnNode node;
  private final Preamble preamble;
  private final String id;
  private final String peer;
  private final int retainSegments;
  private final int keptBytes;
  private final byte[] header = new byte[SegmentHeader.BYTES];
  private final AtomicBoolean closed = new AtomicBoolean();
  private long blockProducer = NO_PRODUCER;
  private long streamProducer = NO_PRODUCER;
  private boolean published;
  private volatile boolean starved;

  /**
   * A publisher.
   *
   * @param node the forwarder; given back when the write ends
   * @param preamble names the block
   * @param id names the write in logs
   * @param peer the DataNode that it is sent to
   * @param retainSegments newest segments to keep
   * @param keptBytes data bytes of a segment, at most
   */
  NativePublisher(
      NdnNode node, Preamble preamble, String id, String peer, int retainSegments, int keptBytes) {
    this.peer = peer;
    this.node = node;
    this.preamble = preamble;
    this.id = id;
    this.retainSegments = retainSegments;
    this.keptBytes = keptBytes;
  }

  @Override
  public synchronized void block(
      long segment, Piece piece, byte[] body, int off, boolean more, byte[] digests, int digestAt)
      throws IOException {
    refuseClosed();
    if (blockProducer == NO_PRODUCER) {
      openBlock();
    }
    if (blockProducer == REFUSED) {
      throw new NoRoomException(id + ": not published");
    }
    publish(blockProducer, segment, piece, body, off, more, digests, digestAt);
  }

  @Override
  public synchronized void stream(
      long segment, Piece piece, byte[] body, int off, boolean more, byte[] digests, int digestAt)
      throws IOException {
    refuseClosed();
    if (streamProducer == NO_PRODUCER) {
      openStream();
    }
    if (streamProducer == REFUSED) {
      throw new NoRoomException(id + ": no room for what the block's segments do not hold");
    }
    publish(streamProducer, segment, piece, body, off, more, digests, digestAt);
  }

  /** Only now: of a small file nothing is published, and no name has to be made known. */
  private void openBlock() throws IOException {
    blockProducer = REFUSED;
    try {
      blockProducer = open(segments(), BLOCK);
    } catch (NoRoomException e) {
      inline(Fallback.NO_ROOM, e);
      throw e;
    } catch (NdnException e) {
      inline(Fallback.NODE_DOWN, e);
      throw e;
    }
  }

  private void inline(Fallback reason, IOException cause) {
    TransferStats.get()
        .fallback(TransportNames.NDN, "the control connection", reason, peer, cause.getMessage());
  }

  private void openStream() throws IOException {
    streamProducer = REFUSED;
    streamProducer = open(Names.stream(segments(), preamble.nonce()), STREAM);
  }

  private String segments() throws IOException {
    return Names.segments(preamble.name(), key());
  }

  private byte[] key() {
    return preamble.key() == null ? null : preamble.key().bytes();
  }

  private long open(String prefix, int kind) throws IOException {
    return Native.producerOpen(node.handle(), prefix, keptBytes, retainSegments, key(), kind);
  }

  private void publish(
      long producer,
      long segment,
      Piece piece,
      byte[] body,
      int off,
      boolean more,
      byte[] digests,
      int digestAt)
      throws IOException {
    piece.header().encode(header);
    Native.producerPublish(
        producer,
        segment,
        header,
        body,
        off + piece.sumsAt(),
        piece.sumsLength(),
        off + piece.dataAt(),
        piece.dataLength(),
        more,
        digests,
        digestAt);
    published = true;
  }

  private void refuseClosed() throws NdnException {
    if (closed.get()) {
      throw new NdnException(id + ": the write has been closed");
    }
  }

  @Override
  public synchronized boolean kept(boolean block, long segment, Piece piece, byte[] body)
      throws IOException {
    long producer = block ? blockProducer : streamProducer;
    return isOpen(producer)
        && Native.producerKept(
            producer,
            segment,
            body,
            piece.sumsAt(),
            piece.sumsLength(),
            piece.dataAt(),
            piece.dataLength());
  }

  @Override
  public void starved() {
    starved = true;
    long pauseMs = node.health().failed(peer, Failure.SILENT, id + " was not got by name").leftMs();
    TransferStats.get()
        .fallback(
            TransportNames.NDN,
            "tcp",
            Fallback.WRITE_STALLED,
            id,
            "bodies go by the control connection; writes to "
                + peer
                + " by TCP for the next "
                + pauseMs
                + " ms");
  }

  @Override
  public synchronized void blockAcknowledged(long upto) {
    acknowledge(blockProducer, upto);
  }

  @Override
  public synchronized void streamAcknowledged(long upto) {
    acknowledge(streamProducer, upto);
  }

  private void acknowledge(long producer, long upto) {
    if (isOpen(producer)) {
      Native.producerAcknowledge(producer, upto);
    }
  }

  private boolean isOpen(long producer) {
    return !closed.get() && producer != NO_PRODUCER && producer != REFUSED;
  }

  @Override
  public void close(boolean ended) {
    if (!closed.compareAndSet(false, true)) {
      return;
    }
    synchronized (this) {
      if (published && ended && !starved) {
        node.health().succeeded(peer);
      }
      long linger = ended ? 0 : LINGER_MS;
      for (long producer : new long[] {blockProducer, streamProducer}) {
        if (producer != NO_PRODUCER && producer != REFUSED) {
          Native.producerClose(producer, linger);
        }
      }
      if (preamble.key() != null) {
        preamble.key().wipe();
      }
    }
    StatsFile.changed(node.settings().statsFile());
    node.close();
  }
}

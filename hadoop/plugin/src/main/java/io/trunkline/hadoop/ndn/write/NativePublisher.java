package io.trunkline.hadoop.ndn.write;

import io.trunkline.hadoop.conf.TransportNames;
import io.trunkline.hadoop.ndn.Names;
import io.trunkline.hadoop.ndn.Native;
import io.trunkline.hadoop.ndn.NdnException;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.ndn.wire.SegmentCut.Piece;
import io.trunkline.hadoop.ndn.wire.SegmentHeader;
import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.StatsFile;
import io.trunkline.hadoop.stats.TransferStats;
import java.io.IOException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/** Publishes a write through the JVM's forwarder, and judges the plane by how the write ends. */
final class NativePublisher implements Publisher {
  /** How long a write that broke off stays answerable; its DataNodes let go of it at once. */
  private static final long LINGER_MS = 1000;

  private static final long NO_PRODUCER = 0;

  private final NdnNode node;
  private final Preamble preamble;
  private final String id;
  private final int retainSegments;
  private final byte[] header = new byte[SegmentHeader.BYTES];
  private final AtomicBoolean closed = new AtomicBoolean();
  private long blockProducer = NO_PRODUCER;
  private long streamProducer = NO_PRODUCER;
  private long publishedNanos;
  private boolean published;
  private volatile long progressedNanos = System.nanoTime();

  /**
   * A publisher.
   *
   * @param node the forwarder; given back when the write ends
   * @param preamble names the block
   * @param id names the write in logs
   * @param retainSegments newest segments to keep
   */
  NativePublisher(NdnNode node, Preamble preamble, String id, int retainSegments) {
    this.node = node;
    this.preamble = preamble;
    this.id = id;
    this.retainSegments = retainSegments;
  }

  /** Makes the block's name known before anybody asks for it. */
  synchronized void announce() throws IOException {
    refuseClosed();
    if (blockProducer == NO_PRODUCER) {
      blockProducer = Native.producerOpen(node.handle(), preamble.name(), retainSegments);
    }
  }

  @Override
  public synchronized void block(long segment, Piece piece, byte[] body, int off, boolean more)
      throws IOException {
    announce();
    publish(blockProducer, segment, piece, body, off, more);
  }

  @Override
  public synchronized void stream(long segment, Piece piece, byte[] body, int off, boolean more)
      throws IOException {
    refuseClosed();
    if (streamProducer == NO_PRODUCER) {
      streamProducer =
          Native.producerOpen(
              node.handle(), Names.stream(preamble.name(), preamble.nonce()), retainSegments);
    }
    publish(streamProducer, segment, piece, body, off, more);
  }

  private void publish(long producer, long segment, Piece piece, byte[] body, int off, boolean more)
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
        more);
    published = true;
    publishedNanos = System.nanoTime();
  }

  private void refuseClosed() throws NdnException {
    if (closed.get()) {
      throw new NdnException(id + ": the write has been closed");
    }
  }

  @Override
  public void progressed() {
    progressedNanos = System.nanoTime();
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
    if (!closed.get() && producer != NO_PRODUCER) {
      Native.producerAcknowledge(producer, upto);
    }
  }

  @Override
  public void close(boolean ended) {
    if (!closed.compareAndSet(false, true)) {
      return;
    }
    synchronized (this) {
      judge(ended);
      long linger = ended ? 0 : LINGER_MS;
      if (blockProducer != NO_PRODUCER) {
        Native.producerClose(blockProducer, linger);
      }
      if (streamProducer != NO_PRODUCER) {
        Native.producerClose(streamProducer, linger);
      }
    }
    StatsFile.changed(node.settings().statsFile());
    node.close();
  }

  /**
   * A pipeline in which no DataNode died, and from which nothing came back for most of the time
   * that a pull may take, has failed for want of named data.
   */
  private void judge(boolean ended) {
    if (!published) {
      return;
    }
    long now = System.nanoTime();
    long silentMs = TimeUnit.NANOSECONDS.toMillis(now - progressedNanos);
    long sincePublishedMs = TimeUnit.NANOSECONDS.toMillis(now - publishedNanos);
    int pullMs = node.settings().pullTimeoutMs();
    if (silentMs > pullMs * 6L / 10 && sincePublishedMs < pullMs * 4L) {
      long pauseMs = node.health().failed(id + " made no progress for " + silentMs + " ms");
      TransferStats.get()
          .fallback(
              TransportNames.NDN,
              node.settings().transportAfter(TransportNames.NDN),
              Fallback.WRITE_STALLED,
              id,
              "nothing came back for " + silentMs + " ms; by TCP for the next " + pauseMs + " ms");
    } else if (ended) {
      node.health().succeeded();
    }
  }
}

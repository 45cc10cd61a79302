package io.trunkline.hadoop.ndn.read;

import io.trunkline.hadoop.conf.TransportNames;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.ndn.wire.SegmentHeader;
import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.StatsFile;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.transport.PlaneHealth.Failure;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hdfs.ReplicaAccessor;

/**
 * A finalized replica that is read by name. A cache on the way or any DataNode that holds it
 * answers; the library has verified the checksums of what it hands out, and opened what is sealed.
 *
 * <p>A failure is no ChecksumException, on which the client would report the replica of a DataNode
 * that may have had no part in it: by TCP it will find out which one is bad.
 */
final class NamedReplica extends ReplicaAccessor {
  private static final long NONE = -1;

  /** So long nothing comes before the block's key is asked for anew, in milliseconds. */
  private static final int RENEW_MS = 1000;

  private final NdnNode node;
  private final String pool;
  private final long block;
  private final long visibleLength;
  private FoundReplica found;
  private ReplicaMetadata metadata;
  private SegmentReader segments;
  private final TransferStats stats = TransferStats.get();
  private final byte[] header = new byte[SegmentHeader.BYTES];

  /** The segment that was got last: checksums, then data. */
  private byte[] body = new byte[0];

  private long current = NONE;
  private int dataAt;
  private int dataLength;
  private boolean closed;

  /**
   * A replica.
   *
   * @param node the forwarder; given back when the replica is closed
   * @param pool block pool
   * @param block block id
   * @param found what is known of the replica
   * @param visibleLength end of what will be read
   */
  NamedReplica(NdnNode node, String pool, long block, FoundReplica found, long visibleLength) {
    this.node = node;
    this.pool = pool;
    this.block = block;
    this.visibleLength = visibleLength;
    readAs(found);
  }

  private void readAs(FoundReplica replica) {
    found = replica;
    metadata = found.metadata();
    current = NONE;
    segments =
        new SegmentReader(
            node,
            found.prefix(),
            metadata.segmentBytes(),
            metadata.manifest(),
            found.key(),
            Math.max(0, visibleLength - 1) / metadata.segmentBytes());
  }

  @Override
  public int read(long pos, byte[] to, int off, int length) throws IOException {
    return read(pos, ByteBuffer.wrap(to, off, length));
  }

  @Override
  public synchronized int read(long pos, ByteBuffer to) throws IOException {
    if (closed) {
      throw new IOException(id() + ": closed");
    }
    if (pos < 0) {
      throw new IOException(id() + ": read at " + pos);
    }
    if (pos >= visibleLength) {
      return -1;
    }
    long at = pos;
    while (to.hasRemaining() && at < visibleLength) {
      load(at);
      int inSegment = (int) (at % metadata.segmentBytes());
      int count =
          (int) Math.min(Math.min(to.remaining(), visibleLength - at), dataLength - inSegment);
      to.put(body, dataAt + inSegment, count);
      at += count;
    }
    stats.add(Counter.BYTES_READ, at - pos);
    return (int) (at - pos);
  }

  /** Gets the segment that a byte lies in. */
  private void load(long at) throws IOException {
    if (at / metadata.segmentBytes() == current) {
      return;
    }
    current = NONE;
    try {
      fetch(at);
    } catch (IOException e) {
      if (e instanceof InterruptedIOException && !(e instanceof SocketTimeoutException)) {
        throw e;
      }
      // With a key it may be that DataNodes do not know it any more, and are well.
      boolean silent = e instanceof SocketTimeoutException && found.renewal() == null;
      Failure failure = silent ? Failure.SILENT : Failure.BAD;
      long pauseMs =
          node.health().failed(id(), failure, id() + " could not be read by name").leftMs();
      found.forget().run();
      stats.fallback(
          TransportNames.NDN,
          node.settings().transportAfter(TransportNames.NDN),
          Fallback.READ_FAILED,
          id(),
          e.getMessage() + "; this block by TCP for the next " + pauseMs + " ms");
      throw e;
    }
    node.health().succeeded(id());
    current = at / metadata.segmentBytes();
  }

  private void fetch(long at) throws IOException {
    int length = await(at);
    long segment = at / metadata.segmentBytes();
    SegmentHeader got = SegmentHeader.decode(header, length);
    long start = segment * metadata.segmentBytes();
    long expected = Math.min(metadata.segmentBytes(), metadata.length() - start);
    if (got.offset() != start
        || got.dataLength() != expected
        || got.checksumType() != metadata.checksumType()
        || got.bytesPerChecksum() != metadata.bytesPerChecksum()) {
      throw new IOException(id() + ": segment " + segment + " does not fit: " + got);
    }
    dataLength = got.dataLength();
    dataAt = length - dataLength;
    stats.add(Counter.SEGMENTS_READ);
  }

  /** Waits for the segment that a byte lies in, under whatever key DataNodes have. */
  private int await(long at) throws IOException {
    int limitMs = node.settings().pullTimeoutMs();
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(limitMs);
    int waitMs = found.renewal() == null ? limitMs : Math.min(RENEW_MS, limitMs);
    while (true) {
      if (body.length < metadata.bodyBytes()) {
        body = new byte[metadata.bodyBytes()];
      }
      int length = segments.get(at / metadata.segmentBytes(), header, body, waitMs);
      if (length >= 0) {
        return length;
      }
      if (System.nanoTime() - deadline >= 0) {
        stats.add(Counter.PULL_TIMEOUTS);
        throw new SocketTimeoutException(
            found.prefix()
                + "/seg="
                + at / metadata.segmentBytes()
                + ": no Data within "
                + limitMs
                + " ms");
      }
      renew();
    }
  }

  private void renew() throws IOException {
    FoundReplica renewed = found.renewal() == null ? null : found.renewal().renewed();
    if (renewed != null && !renewed.prefix().equals(found.prefix())) {
      segments.close();
      found.wipe();
      readAs(renewed);
      stats.add(Counter.KEYS_RENEWED);
    } else if (renewed != null) {
      renewed.wipe();
    }
  }

  private String id() {
    return id(pool, block, metadata.genstamp());
  }

  /** Names a replica in logs and as a subject of health. */
  static String id(String pool, long block, long genstamp) {
    return pool + ":blk_" + block + "_" + genstamp;
  }

  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      segments.close();
      found.wipe();
      StatsFile.changed(node.settings().statsFile());
      node.close();
    }
  }

  @Override
  public boolean isLocal() {
    return false;
  }

  @Override
  public boolean isShortCircuit() {
    return false;
  }
}

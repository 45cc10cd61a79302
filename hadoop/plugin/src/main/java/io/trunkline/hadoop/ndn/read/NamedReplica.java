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
import org.apache.hadoop.hdfs.ReplicaAccessor;

/**
 * A finalized replica that is read by name. A cache on the way or any DataNode that holds it
 * answers; the library has verified the checksums of what it hands out.
 *
 * <p>A failure is no ChecksumException, on which the client would report the replica of a DataNode
 * that may have had no part in it: by TCP it will find out which one is bad.
 */
final class NamedReplica extends ReplicaAccessor {
  private static final long NONE = -1;

  private final NdnNode node;
  private final String pool;
  private final long block;
  private final ReplicaMetadata metadata;
  private final long visibleLength;
  private final SegmentReader segments;
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
   * @param metadata what is known of the replica
   * @param visibleLength end of what will be read
   */
  NamedReplica(
      NdnNode node, String pool, long block, ReplicaMetadata metadata, long visibleLength) {
    this.node = node;
    this.pool = pool;
    this.block = block;
    this.metadata = metadata;
    this.visibleLength = visibleLength;
    this.segments =
        new SegmentReader(
            node,
            node.names().version(pool, block, metadata.genstamp()),
            metadata.manifest(),
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
      load(at / metadata.segmentBytes());
      int inSegment = (int) (at % metadata.segmentBytes());
      int count =
          (int) Math.min(Math.min(to.remaining(), visibleLength - at), dataLength - inSegment);
      to.put(body, dataAt + inSegment, count);
      at += count;
    }
    stats.add(Counter.BYTES_READ, at - pos);
    return (int) (at - pos);
  }

  private void load(long segment) throws IOException {
    if (segment == current) {
      return;
    }
    current = NONE;
    if (body.length == 0) {
      body = new byte[SegmentHeader.MAX_BODY_BYTES];
    }
    try {
      fetch(segment);
    } catch (IOException e) {
      if (e instanceof InterruptedIOException && !(e instanceof SocketTimeoutException)) {
        throw e;
      }
      Failure failure = e instanceof SocketTimeoutException ? Failure.SILENT : Failure.BAD;
      long pauseMs =
          node.health().failed(id(), failure, id() + " could not be read by name").leftMs();
      MetadataCache.forget(node, pool, block, metadata.genstamp());
      stats.fallback(
          TransportNames.NDN,
          node.settings().transportAfter(TransportNames.NDN),
          Fallback.READ_FAILED,
          id(),
          e.getMessage() + "; this block by TCP for the next " + pauseMs + " ms");
      throw e;
    }
    node.health().succeeded(id());
    current = segment;
  }

  private void fetch(long segment) throws IOException {
    int length = segments.get(segment, header, body);
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

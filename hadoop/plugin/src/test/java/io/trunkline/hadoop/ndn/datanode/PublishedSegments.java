package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.StockBytes;
import io.trunkline.hadoop.ndn.Names;
import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.ndn.wire.SegmentCut.Piece;
import io.trunkline.hadoop.ndn.wire.SegmentHeader;
import io.trunkline.hadoop.ndn.write.Publisher;
import io.trunkline.hadoop.ndn.write.SilentPublisher;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

/** A network in memory: what the writer of a block has published, and DataNodes ask for by name. */
final class PublishedSegments {
  static final Names NAMES = new Names("/hadoop");

  /** Of the write that {@link StockBytes} are of. */
  static final Preamble PREAMBLE =
      new Preamble(
          NAMES.version(StockBytes.POOL, StockBytes.BLOCK, StockBytes.GENSTAMP),
          99,
          StockBytes.SEGMENT);

  /** What stands between a DataNode and the network. */
  @FunctionalInterface
  interface Path {
    /**
     * A segment is asked for.
     *
     * @return false when nothing comes
     * @throws IOException when the network says that it cannot be had
     */
    boolean brings(Piece piece) throws IOException;
  }

  /** A segment's header, and its checksums and data. */
  record Segment(byte[] header, byte[] content) {}

  private final Map<String, Segment> segments = new ConcurrentHashMap<>();
  private final AtomicInteger starved = new AtomicInteger();

  /** Prefixes of the streams that DataNodes have opened, and of those that they have closed. */
  final List<String> opened = new CopyOnWriteArrayList<>();

  final List<String> closed = new CopyOnWriteArrayList<>();

  void clear() {
    segments.clear();
    starved.set(0);
    opened.clear();
    closed.clear();
  }

  /** How often a write was told that a DataNode gets nothing by name. */
  int starved() {
    return starved.get();
  }

  Segment get(String name) {
    return segments.get(name);
  }

  void put(String name, Segment segment) {
    segments.put(name, segment);
  }

  private void put(String prefix, long number, Piece piece, byte[] body, int off) {
    byte[] header = new byte[SegmentHeader.BYTES];
    piece.header().encode(header);
    byte[] content =
        ByteBuffer.allocate(piece.sumsLength() + piece.dataLength())
            .put(body, off + piece.sumsAt(), piece.sumsLength())
            .put(body, off + piece.dataAt(), piece.dataLength())
            .array();
    put(prefix + "/" + number, new Segment(header, content));
  }

  /** Copies a segment to where a packet's body is put together; null when there is none. */
  private Segment copy(String prefix, long number, Piece piece, byte[] to, int off)
      throws IOException {
    Segment found = get(prefix + "/" + number);
    if (found == null) {
      return null;
    }
    ByteBuffer content = ByteBuffer.wrap(found.content());
    if (content.remaining() != piece.sumsLength() + piece.dataLength()) {
      throw new IOException("segment " + number + " has another length");
    }
    content.get(to, off + piece.sumsAt(), piece.sumsLength());
    content.get(to, off + piece.dataAt(), piece.dataLength());
    return found;
  }

  private static String prefix(boolean block) {
    return block ? PREAMBLE.name() : Names.stream(PREAMBLE.name(), PREAMBLE.nonce());
  }

  /** What a write publishes with. */
  Publisher publisher() {
    return new SilentPublisher() {
      @Override
      public void block(
          long segment,
          Piece piece,
          byte[] body,
          int off,
          boolean more,
          byte[] digests,
          int digestAt) {
        put(prefix(true), segment, piece, body, off);
      }

      @Override
      public void stream(
          long segment,
          Piece piece,
          byte[] body,
          int off,
          boolean more,
          byte[] digests,
          int digestAt) {
        put(prefix(false), segment, piece, body, off);
      }

      @Override
      public boolean kept(boolean block, long segment, Piece piece, byte[] body)
          throws IOException {
        return copy(prefix(block), segment, piece, body, 0) != null;
      }

      @Override
      public void starved() {
        starved.incrementAndGet();
      }
    };
  }

  /** What a DataNode pulls a stream of segments with. */
  SegmentSource source(String prefix, Path path) {
    opened.add(prefix);
    return new SegmentSource() {
      @Override
      public void known(long upto) {}

      @Override
      public boolean take(
          long segment,
          byte[] header,
          Piece piece,
          byte[] to,
          int off,
          byte[] digests,
          int digestAt,
          int timeoutMs)
          throws IOException {
        Segment found = path.brings(piece) ? copy(prefix, segment, piece, to, off) : null;
        if (found == null) {
          try {
            Thread.sleep(timeoutMs);
          } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
          }
          return false;
        }
        System.arraycopy(found.header(), 0, header, 0, header.length);
        return true;
      }

      @Override
      public void close() {
        closed.add(prefix);
      }
    };
  }
}

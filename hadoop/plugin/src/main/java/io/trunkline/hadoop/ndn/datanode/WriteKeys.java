package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.ndn.wire.ControlRecord;
import io.trunkline.hadoop.ndn.wire.SegmentHeader;
import io.trunkline.hadoop.ndn.wire.WriteKey;
import java.io.ByteArrayOutputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * The keys of the writes that this DataNode took part in of late, the least recently used going
 * first. What a write has left in caches then serves readers, too.
 *
 * <p>A segment number must never be sealed for two contents under one key. So of each write the
 * digests of the segments are noted that came by name: the key is given to readers for a replica
 * that consists of just those, to the last one, and for no other. A write is remembered from its
 * first segment on: stock code has checked its token by then.
 */
final class WriteKeys {
  /** Most writes remembered, some 1200 bytes each, and the checksums of a segment not yet whole. */
  static final int MAX_WRITES = 8192;

  /** Most checksums kept of one write: those of a segment of a whole packet, by Hadoop's chunks. */
  static final int MAX_SUMS_BYTES = 4096;

  private record Block(String pool, long id) {}

  /**
   * What a write has sealed.
   *
   * @param key with this key
   * @param segmentBytes data bytes of each segment but the last
   * @param segments how many segments' digests, from the first one on
   * @param digest SHA-256 over their digests
   */
  record Written(WriteKey key, int segmentBytes, long segments, byte[] digest) {}

  /** One write, as it goes on. */
  final class Write {
    private final Block block;
    private final long genstamp;
    private final WriteKey key;
    private final int segmentBytes;
    private final MessageDigest digests = sha256();

    /** The segment that is not whole yet. */
    private long next;

    /** What has come of it: its header so far, null for nothing, and its checksums. */
    private SegmentHeader part;

    private final ByteArrayOutputStream sums = new ByteArrayOutputStream();

    /** Something was left out, or came again: nothing more is noted. */
    private boolean over;

    private Write(Block block, long genstamp, WriteKey key, int segmentBytes) {
      this.block = block;
      this.genstamp = genstamp;
      // The write wipes its own when it is over.
      this.key = new WriteKey(key.bytes().clone());
      this.segmentBytes = segmentBytes;
    }

    /**
     * Bytes of the block have come by name: a segment of it, or one of the writer's stream that
     * holds a segment of the block or a part of one, as the end of a block mostly does. After any
     * that was left out nothing is noted any more: no replica has the digest of what came before.
     *
     * @param stream whether it is of the writer's stream, or else of the block
     * @param header says which bytes they are
     * @param digests array with the digest of header and checksums
     * @param digestAt where in it
     * @param body array with the checksums
     * @param sumsAt where in it
     */
    void took(
        boolean stream,
        SegmentHeader header,
        byte[] digests,
        int digestAt,
        byte[] body,
        int sumsAt) {
      boolean first;
      synchronized (this) {
        first = next == 0 && part == null;
        int before = part == null ? 0 : part.dataLength();
        over |=
            header.offset() != next * segmentBytes + before
                || before % header.bytesPerChecksum() != 0
                || before + header.dataLength() > segmentBytes
                // What no segment of the block's name holds is in no cache that readers ask.
                || first && stream;
        if (over) {
          return;
        }
        if (header.dataLength() == segmentBytes) {
          this.digests.update(digests, digestAt, ControlRecord.DIGEST_BYTES);
          next++;
        } else {
          addPart(header, body, sumsAt);
        }
      }
      if (first) {
        remember(this);
      }
    }

    private void addPart(SegmentHeader header, byte[] body, int sumsAt) {
      if (sums.size() + header.checksumBytes() > MAX_SUMS_BYTES) {
        over = true;
        return;
      }
      sums.write(body, sumsAt, (int) header.checksumBytes());
      int before = part == null ? 0 : part.dataLength();
      part =
          new SegmentHeader(
              header.checksumType(),
              header.bytesPerChecksum(),
              before + header.dataLength(),
              next * segmentBytes);
      if (part.dataLength() == segmentBytes) {
        digests.update(digestOfPart(), 0, ControlRecord.DIGEST_BYTES);
        next++;
        part = null;
        sums.reset();
      }
    }

    /** Bytes of checksums that are kept. */
    synchronized int keptBytes() {
      return sums.size();
    }

    /** The digest of a segment that holds just this; its first bytes count. */
    private byte[] digestOfPart() {
      byte[] header = new byte[SegmentHeader.BYTES];
      part.encode(header);
      MessageDigest digest = sha256();
      digest.update(header);
      return digest.digest(sums.toByteArray());
    }

    private synchronized Written written() {
      try {
        MessageDigest soFar = (MessageDigest) digests.clone();
        if (part != null) {
          soFar.update(digestOfPart(), 0, ControlRecord.DIGEST_BYTES);
        }
        long segments = part == null ? next : next + 1;
        return new Written(key, segmentBytes, segments, soFar.digest());
      } catch (CloneNotSupportedException e) {
        throw new IllegalStateException("SHA-256 of this JVM cannot be copied", e);
      }
    }
  }

  private final Map<Block, Write> writes =
      new LinkedHashMap<>(16, 0.75f, true) {
        private static final long serialVersionUID = 1L;

        @Override
        protected boolean removeEldestEntry(Map.Entry<Block, Write> eldest) {
          return size() > MAX_WRITES;
        }
      };

  /**
   * A write begins.
   *
   * @param pool block pool
   * @param block block id
   * @param genstamp generation stamp that the block gets by it
   * @param key what its segments are sealed with, null when they are not
   * @param segmentBytes data bytes of a segment
   * @return takes note of what comes, null without a key
   */
  Write begins(String pool, long block, long genstamp, WriteKey key, int segmentBytes) {
    return key == null ? null : new Write(new Block(pool, block), genstamp, key, segmentBytes);
  }

  private synchronized void remember(Write write) {
    writes.put(write.block, write);
  }

  /**
   * What the write has sealed that a block came by.
   *
   * @param pool block pool
   * @param block block id
   * @param genstamp its generation stamp
   * @return null when it is not remembered
   */
  Written of(String pool, long block, long genstamp) {
    Write write;
    synchronized (this) {
      write = writes.get(new Block(pool, block));
    }
    return write == null || write.genstamp != genstamp ? null : write.written();
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JVM has SHA-256", e);
    }
  }
}

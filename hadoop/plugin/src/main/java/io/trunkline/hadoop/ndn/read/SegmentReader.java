package io.trunkline.hadoop.ndn.read;

import io.trunkline.hadoop.ndn.Native;
import io.trunkline.hadoop.ndn.NdnException;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.ndn.NoRoomException;
import io.trunkline.hadoop.ndn.UnverifiedException;
import io.trunkline.hadoop.ndn.wire.ControlRecord;
import io.trunkline.hadoop.ndn.wire.WriteKey;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.util.concurrent.TimeUnit;

/** Pulls the segments of one finalized block, ahead of a reader that goes forward. */
final class SegmentReader implements AutoCloseable {
  /** How long a wait goes on before the thread is looked at again. */
  private static final int SLICE_MS = 100;

  private static final int PAUSE_MS = 50;

  /** A stream that fails for good is opened again so often, less one, before the read fails. */
  private static final int MAX_FAILURES = 3;

  private static final long NONE = 0;
  private static final int NOT_YET = -1;

  private final NdnNode node;
  private final String prefix;
  private final int segmentBytes;
  private final byte[] manifest;
  private final byte[] key;
  private final long last;
  private long pull = NONE;
  private long next;

  /**
   * A reader.
   *
   * @param node the forwarder
   * @param prefix what the block's segments lie below
   * @param segmentBytes data bytes of a segment
   * @param manifest the digests of its segments; null where they are sealed
   * @param key what they are sealed with, null where they are not
   * @param last last segment that will be asked for
   */
  SegmentReader(
      NdnNode node, String prefix, int segmentBytes, byte[] manifest, WriteKey key, long last) {
    this.manifest = manifest;
    this.key = key == null ? null : key.bytes();
    this.node = node;
    this.prefix = prefix;
    this.segmentBytes = segmentBytes;
    this.last = last;
  }

  /**
   * Gets a segment. A stream that failed, or that has passed the segment, is opened again. When no
   * segment comes, whatever lies in {@code to} is void.
   *
   * @param segment its number
   * @param header where its 24-byte header goes
   * @param to where checksums and data go
   * @param limitMs how long to wait for it, in milliseconds
   * @return length of checksums and data; below 0 when the time has passed
   * @throws IOException when it cannot be had
   */
  int get(long segment, byte[] header, byte[] to, int limitMs) throws IOException {
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(limitMs);
    int failures = 0;
    while (true) {
      try {
        int length = take(segment, header, to);
        if (length >= 0) {
          next = segment + 1;
          return length;
        }
      } catch (UnverifiedException | NoRoomException e) {
        restart();
        throw e;
      } catch (NdnException e) {
        TransferStats.get().add(Counter.PULL_RETRIES);
        restart();
        if (++failures == MAX_FAILURES) {
          throw e;
        }
        pause();
      }
      if (Thread.currentThread().isInterrupted()) {
        throw new InterruptedIOException(prefix + "/seg=" + segment + ": interrupted");
      }
      if (System.nanoTime() - deadline >= 0) {
        return NOT_YET;
      }
    }
  }

  private int take(long segment, byte[] header, byte[] to) throws IOException {
    if (pull != NONE && segment < next) {
      restart();
    }
    if (pull == NONE) {
      pull =
          Native.pullOpen(
              node.handle(),
              prefix,
              segmentBytes,
              segment,
              node.settings().windowSegments(segmentBytes),
              false,
              last,
              key,
              0);
      next = segment;
    }
    return Native.pullTake(
        pull,
        segment,
        header,
        to,
        0,
        to.length,
        manifest,
        manifest == null ? 0 : (int) segment * ControlRecord.DIGEST_BYTES,
        SLICE_MS);
  }

  private static void pause() {
    try {
      Thread.sleep(PAUSE_MS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  /** Ends the stream; the next segment opens it again. */
  void restart() {
    if (pull != NONE) {
      Native.pullClose(pull);
      pull = NONE;
    }
  }

  @Override
  public void close() {
    restart();
  }
}

package io.trunkline.hadoop.ndn.read;

import io.trunkline.hadoop.ndn.Native;
import io.trunkline.hadoop.ndn.NdnException;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.ndn.NoRoomException;
import io.trunkline.hadoop.ndn.UnverifiedException;
import io.trunkline.hadoop.ndn.wire.ControlRecord;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.SocketTimeoutException;
import java.util.concurrent.TimeUnit;

/** Pulls the segments of one finalized block, ahead of a reader that goes forward. */
final class SegmentReader implements AutoCloseable {
  /** How long a wait goes on before the thread is looked at again. */
  private static final int SLICE_MS = 100;

  private static final int PAUSE_MS = 50;

  /** A stream that fails for good is opened again so often, less one, before the read fails. */
  private static final int MAX_FAILURES = 3;

  private static final long NONE = 0;

  private final NdnNode node;
  private final String prefix;
  private final byte[] manifest;
  private final long last;
  private long pull = NONE;
  private long next;

  /**
   * A reader.
   *
   * @param node the forwarder
   * @param prefix the block's versioned name
   * @param manifest the digests of its segments
   * @param last last segment that will be asked for
   */
  SegmentReader(NdnNode node, String prefix, byte[] manifest, long last) {
    this.manifest = manifest;
    this.node = node;
    this.prefix = prefix;
    this.last = last;
  }

  /**
   * Gets a segment. A stream that failed, or that has passed the segment, is opened again.
   *
   * @param segment its number
   * @param header where its 24-byte header goes
   * @param to where checksums and data go
   * @return length of checksums and data
   * @throws IOException when it does not come in time
   */
  int get(long segment, byte[] header, byte[] to) throws IOException {
    int limitMs = node.settings().pullTimeoutMs();
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
        TransferStats.get().add(Counter.PULL_TIMEOUTS);
        throw new SocketTimeoutException(
            prefix + "/seg=" + segment + ": no Data within " + limitMs + " ms");
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
              segment,
              node.settings().windowSegments(),
              false,
              last,
              null,
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
        (int) segment * ControlRecord.DIGEST_BYTES,
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

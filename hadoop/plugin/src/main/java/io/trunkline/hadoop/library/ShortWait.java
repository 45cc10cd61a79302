package io.trunkline.hadoop.library;

import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Waits for a moment for what a connection brings, before stock code does by a selector. Of what
 * that takes of processors the wait itself is the smaller part: a selector is taken from a pool,
 * told of the channel, and told to forget it. At a rate at which it matters the next bytes are here
 * within the moment.
 *
 * <p>Stock code's own waits keep their meaning: after this one it selects with its timeout, and
 * that ends when the thread is interrupted or the channel closed, which this one does not.
 */
public final class ShortWait {
  private static final Logger LOG = LoggerFactory.getLogger(ShortWait.class);

  /** By how much an interrupt comes later; stock code gives its threads seconds to end. */
  private static final int MOMENT_MS = 20;

  private record Known(SocketChannel channel, int descriptor) {}

  /** The connection that was waited for last. */
  private volatile Known known;

  private volatile boolean impossible;

  /**
   * Waits, unless the thread is interrupted, or there is no native library.
   *
   * @param channel a connection that is not blocking, of which nothing could be read
   * @return whether it is to be read again; after false stock code selects
   */
  public boolean readable(SocketChannel channel) {
    if (impossible || Thread.currentThread().isInterrupted()) {
      return false;
    }
    try {
      Known of = known;
      if (of == null || of.channel() != channel) {
        of = new Known(channel, NativeSockets.descriptor(channel));
        known = of;
      }
      // A read closes the channel of a thread that is interrupted; a selector does not.
      return NativeSockets.awaitReadable(of.descriptor(), MOMENT_MS)
          && !Thread.currentThread().isInterrupted();
    } catch (IOException | RuntimeException | LinkageError e) {
      impossible = true;
      LOG.debug("{} is waited for by selectors alone", channel, e);
      return false;
    }
  }

  /**
   * What reads a connection as stock code does, after a short wait each.
   *
   * @param stock stock code's stream on it, which has made it not blocking
   * @param channel the connection
   * @return a stream in place of stock code's
   */
  public static InputStream before(InputStream stock, SocketChannel channel) {
    ShortWait shortWait = new ShortWait();
    return new FilterInputStream(stock) {
      @Override
      public int read(byte[] to, int off, int length) throws IOException {
        if (length > 0 && shortWait.readable(channel)) {
          int count = channel.read(ByteBuffer.wrap(to, off, length));
          if (count != 0) {
            return count;
          }
        }
        return in.read(to, off, length);
      }
    };
  }
}

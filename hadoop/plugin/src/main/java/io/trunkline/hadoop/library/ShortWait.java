package io.trunkline.hadoop.library;

import java.io.IOException;
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
      // A read closes the channel of a thread that is interrupted; a selector does not.
      return NativeSockets.awaitReadable(channel, MOMENT_MS)
          && !Thread.currentThread().isInterrupted();
    } catch (IOException | RuntimeException | LinkageError e) {
      impossible = true;
      LOG.debug("{} is waited for by selectors alone", channel, e);
      return false;
    }
  }
}

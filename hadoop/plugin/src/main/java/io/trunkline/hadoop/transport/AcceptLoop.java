package io.trunkline.hadoop.transport;

import java.io.Closeable;
import java.io.IOException;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hdfs.net.Peer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The thread that accepts a transport's connections; nothing that goes wrong with one ends it. */
public final class AcceptLoop<C extends Closeable> implements AutoCloseable {
  /** A listener. */
  public interface Listener<C> extends Closeable {
    /**
     * Waits for a connection.
     *
     * @return the connection
     * @throws IOException when there is none to be had now
     */
    C accept() throws IOException;

    /**
     * Whether connections may still come.
     *
     * @return false once it is closed
     */
    boolean isOpen();
  }

  /** Makes what stock code sees of a connection. */
  @FunctionalInterface
  public interface Peers<C> {
    /**
     * Makes it.
     *
     * @param accepted the connection
     * @return the peer
     * @throws IOException when the connection has gone already
     */
    Peer of(C accepted) throws IOException;
  }

  private static final Logger LOG = LoggerFactory.getLogger(AcceptLoop.class);
  private static final int PAUSE_MS = 100;
  private static final int NO_MEMORY_PAUSE_MS = 1000;

  private final Listener<C> listener;
  private final Peers<C> peers;
  private final PeerHandoff handoff;
  private final Thread thread;

  /**
   * Starts to accept.
   *
   * @param name names the thread
   * @param listener the listener; closed with the loop
   * @param peers make what stock code sees of a connection
   * @param handoff takes the connections
   */
  public AcceptLoop(String name, Listener<C> listener, Peers<C> peers, PeerHandoff handoff) {
    this.listener = listener;
    this.peers = peers;
    this.handoff = handoff;
    thread = new Thread(this::run, name);
    thread.setDaemon(true);
    thread.start();
  }

  private void run() {
    while (listener.isOpen()) {
      try {
        C accepted = listener.accept();
        handoff.take(accepted, () -> peers.of(accepted));
      } catch (IOException | RuntimeException | LinkageError e) {
        if (listener.isOpen()) {
          handoff.failed("accept failed", e);
          pause(PAUSE_MS);
        }
      } catch (OutOfMemoryError e) {
        handoff.failed("no thread for a connection", e);
        pause(NO_MEMORY_PAUSE_MS);
      }
    }
  }

  private static void pause(int milliseconds) {
    try {
      TimeUnit.MILLISECONDS.sleep(milliseconds);
    } catch (InterruptedException e) {
      LOG.debug("interrupted, the DataNode shuts down");
    }
  }

  /** Accepts no more; connections that are open go on. */
  @Override
  public void close() {
    try {
      listener.close();
      thread.join(PAUSE_MS);
    } catch (IOException e) {
      LOG.debug("listener not closed", e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}

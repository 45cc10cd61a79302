package io.trunkline.hadoop.datanode;

import io.trunkline.hadoop.conf.Setting;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.StandardSocketOptions;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hdfs.net.Peer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Listener of the plug-in. What it accepts is served by the DataNode's own DataXceiverServer, so
 * that throttling, eviction of writers and out-of-band messages reach it as any other connection.
 */
final class Acceptor implements AutoCloseable {
  /** Makes what stock code sees of a connection. */
  @FunctionalInterface
  interface Peers {
    Peer of(Socket accepted) throws IOException;
  }

  private static final Logger LOG = LoggerFactory.getLogger(Acceptor.class);
  private static final int BACKLOG = 256;
  private static final int PAUSE_MS = 100;
  private static final int NO_MEMORY_PAUSE_MS = 1000;
  private static final long QUIET_NANOS = TimeUnit.MINUTES.toNanos(1);

  private final ServerSocketChannel listener;
  private final Peers peers;
  private final DataNodeService.Xceivers xceivers;
  private final Thread thread;
  private boolean said;
  private long saidNanos;

  /**
   * Starts to listen.
   *
   * @param address where
   * @param peers make what stock code sees of a connection
   * @param xceivers serves the connections
   * @throws IOException when the address cannot be had
   */
  Acceptor(InetSocketAddress address, Peers peers, DataNodeService.Xceivers xceivers)
      throws IOException {
    this.peers = peers;
    this.xceivers = xceivers;
    listener = ServerSocketChannel.open();
    try {
      listener.setOption(StandardSocketOptions.SO_REUSEADDR, true);
      listener.bind(address, BACKLOG);
    } catch (IOException e) {
      listener.close();
      throw new IOException(
          Setting.DATANODE_ADDRESS.key() + " = " + address + ": " + e.getMessage(), e);
    }
    thread = new Thread(this::run, "trunkline-acceptor");
    thread.setDaemon(true);
    thread.start();
  }

  /** Where it listens. */
  InetSocketAddress address() throws IOException {
    return (InetSocketAddress) listener.getLocalAddress();
  }

  private void run() {
    while (listener.isOpen()) {
      try {
        serve(listener.accept());
      } catch (IOException e) {
        if (listener.isOpen()) {
          say("no connection accepted by the plug-in", e);
          pause(PAUSE_MS);
        }
      } catch (OutOfMemoryError e) {
        say("no thread for a connection to the plug-in", e);
        pause(NO_MEMORY_PAUSE_MS);
      }
    }
  }

  /** A connection that is not served is closed at once, and none behind it has to wait for that. */
  private void serve(SocketChannel accepted) {
    boolean served = false;
    try {
      xceivers.serve(peers.of(accepted.socket()));
      served = true;
    } catch (IOException | RuntimeException e) {
      say("connection not taken by the plug-in", e);
    } finally {
      if (!served) {
        close(accepted);
      }
    }
  }

  /** Strangers can bring failures about as often as they like: one line a minute. */
  private void say(String what, Throwable e) {
    long now = System.nanoTime();
    if (said && now - saidNanos < QUIET_NANOS) {
      LOG.debug("{}: {}", what, e.toString());
      return;
    }
    said = true;
    saidNanos = now;
    LOG.warn("{}: {}", what, e.toString());
  }

  private static void close(SocketChannel accepted) {
    try {
      accepted.close();
    } catch (IOException e) {
      LOG.debug("connection not closed", e);
    }
  }

  private static void pause(int milliseconds) {
    try {
      Thread.sleep(milliseconds);
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

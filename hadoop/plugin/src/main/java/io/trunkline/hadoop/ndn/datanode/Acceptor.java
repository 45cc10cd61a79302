package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.conf.Setting;
import io.trunkline.hadoop.transport.Intake;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.StandardSocketOptions;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import org.apache.hadoop.hdfs.net.Peer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Listener of named data's TCP connections. */
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

  private final ServerSocketChannel listener;
  private final Peers peers;
  private final Intake intake;
  private final Thread thread;

  /**
   * Starts to listen.
   *
   * @param address where
   * @param peers make what stock code sees of a connection
   * @param intake takes the connections
   * @throws IOException when the address cannot be had
   */
  Acceptor(InetSocketAddress address, Peers peers, Intake intake) throws IOException {
    this.peers = peers;
    this.intake = intake;
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
        SocketChannel accepted = listener.accept();
        intake.take(accepted, () -> peers.of(accepted.socket()));
      } catch (IOException e) {
        if (listener.isOpen()) {
          intake.say("no connection accepted by the plug-in", e);
          pause(PAUSE_MS);
        }
      } catch (OutOfMemoryError e) {
        intake.say("no thread for a connection to the plug-in", e);
        pause(NO_MEMORY_PAUSE_MS);
      }
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

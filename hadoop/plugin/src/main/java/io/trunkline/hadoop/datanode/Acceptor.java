package io.trunkline.hadoop.datanode;

import io.trunkline.hadoop.conf.Setting;
import io.trunkline.hadoop.ndn.NdnNode;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Listener of the plug-in. What it accepts is served by the DataNode's own DataXceiverServer, so
 * that throttling, eviction of writers and out-of-band messages reach it as any other connection.
 */
final class Acceptor implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(Acceptor.class);
  private static final int BACKLOG = 256;
  private static final int PAUSE_MS = 100;

  private final ServerSocketChannel listener;
  private final NdnNode node;
  private final ReplicaResolver resolver;
  private final DataNodeService.Xceivers xceivers;
  private final Thread thread;

  /**
   * Starts to listen.
   *
   * @param address where
   * @param node the forwarder
   * @param resolver told of blocks that are written to
   * @param xceivers serves the connections
   * @throws IOException when the address cannot be had
   */
  Acceptor(
      InetSocketAddress address,
      NdnNode node,
      ReplicaResolver resolver,
      DataNodeService.Xceivers xceivers)
      throws IOException {
    this.node = node;
    this.resolver = resolver;
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
      SocketChannel accepted = null;
      try {
        accepted = listener.accept();
        xceivers.serve(new NamedPeer(accepted.socket(), node, resolver));
      } catch (IOException | RuntimeException e) {
        close(accepted);
        if (listener.isOpen()) {
          LOG.warn("connection not accepted by the plug-in: {}", e.toString());
          pause();
        }
      }
    }
  }

  private static void close(SocketChannel accepted) {
    if (accepted != null) {
      try {
        accepted.close();
      } catch (IOException e) {
        LOG.debug("connection not closed", e);
      }
    }
  }

  private static void pause() {
    try {
      Thread.sleep(PAUSE_MS);
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

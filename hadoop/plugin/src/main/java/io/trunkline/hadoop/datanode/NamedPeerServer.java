package io.trunkline.hadoop.datanode;

import io.trunkline.hadoop.conf.Setting;
import io.trunkline.hadoop.ndn.NdnNode;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.channels.ServerSocketChannel;
import org.apache.hadoop.hdfs.net.Peer;
import org.apache.hadoop.hdfs.net.PeerServer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Listener of the plug-in, for a second DataXceiverServer. Stock code stops the whole DataNode on
 * anything but an IOException out of {@link #accept}, and calls again at once on all but a timeout;
 * so every failure becomes a timeout, after a pause.
 */
final class NamedPeerServer implements PeerServer {
  private static final Logger LOG = LoggerFactory.getLogger(NamedPeerServer.class);
  private static final int BACKLOG = 256;
  private static final int ACCEPT_TIMEOUT_MS = 300;
  private static final int PAUSE_MS = 100;

  private final ServerSocket socket;
  private final NdnNode node;
  private final ReplicaResolver resolver;

  /**
   * Starts to listen.
   *
   * @param address where
   * @param node the forwarder
   * @param resolver told of blocks that are written to
   * @throws IOException when the address cannot be had
   */
  NamedPeerServer(InetSocketAddress address, NdnNode node, ReplicaResolver resolver)
      throws IOException {
    this.node = node;
    this.resolver = resolver;
    ServerSocketChannel channel = ServerSocketChannel.open();
    try {
      channel.bind(address, BACKLOG);
    } catch (IOException e) {
      channel.close();
      throw new IOException(
          Setting.DATANODE_ADDRESS.key() + " = " + address + ": " + e.getMessage(), e);
    }
    socket = channel.socket();
    socket.setSoTimeout(ACCEPT_TIMEOUT_MS);
  }

  /** Where it listens. */
  InetSocketAddress address() {
    return new InetSocketAddress(socket.getInetAddress(), socket.getLocalPort());
  }

  @Override
  public Peer accept() throws IOException {
    Socket accepted = null;
    try {
      accepted = socket.accept();
      return new NamedPeer(accepted, node, resolver);
    } catch (SocketTimeoutException e) {
      close(accepted);
      throw e;
    } catch (IOException | RuntimeException e) {
      close(accepted);
      if (!socket.isClosed()) {
        LOG.warn("connection to the plug-in of the DataNode not accepted", e);
      }
      pause();
      throw timeout(e);
    }
  }

  private static SocketTimeoutException timeout(Exception cause) {
    SocketTimeoutException timeout = new SocketTimeoutException(cause.toString());
    timeout.initCause(cause);
    return timeout;
  }

  private static void close(Socket accepted) {
    if (accepted != null) {
      try {
        accepted.close();
      } catch (IOException e) {
        LOG.debug("connection not closed", e);
      }
    }
  }

  /** An interrupt means that the DataNode shuts down; its loop sees that without being told. */
  private static void pause() {
    try {
      Thread.sleep(PAUSE_MS);
    } catch (InterruptedException e) {
      LOG.debug("interrupted, the DataNode shuts down");
    }
  }

  @Override
  public void setReceiveBufferSize(int bytes) throws IOException {
    socket.setReceiveBufferSize(bytes);
  }

  @Override
  public int getReceiveBufferSize() throws IOException {
    return socket.getReceiveBufferSize();
  }

  @Override
  public String getListeningString() {
    return socket.getLocalSocketAddress().toString();
  }

  @Override
  public void close() throws IOException {
    socket.close();
  }

  @Override
  public String toString() {
    return "NamedPeerServer(" + getListeningString() + ")";
  }
}

package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.stats.StatsFile;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.nio.channels.ReadableByteChannel;
import org.apache.hadoop.hdfs.net.NioInetPeer;
import org.apache.hadoop.hdfs.net.Peer;
import org.apache.hadoop.net.unix.DomainSocket;

/**
 * A connection to the plug-in as stock DataXceiver sees it: a stock peer, but for what is read from
 * it.
 */
final class NamedPeer implements Peer {
  private final NioInetPeer stock;
  private final NamedInput in;
  private final String remote;
  private final String local;
  private final NdnNode node;
  private volatile int readTimeoutMs;
  private volatile boolean closed;

  /**
   * A peer.
   *
   * @param socket an accepted connection, with a channel
   * @param node the forwarder
   * @param resolver told of blocks that are written to
   * @throws IOException when the connection has gone already
   */
  NamedPeer(Socket socket, NdnNode node, ReplicaResolver resolver) throws IOException {
    this.node = node;
    socket.setTcpNoDelay(true);
    stock = new NioInetPeer(socket);
    remote = stock.getRemoteAddressString();
    if (remote == null) {
      throw new IOException("connection has gone before it was accepted");
    }
    local = stock.getLocalAddressString();
    in =
        new NamedInput(
            new ControlInput(stock.getInputStream(), socket.getChannel()),
            node.names(),
            (op, preamble, control) -> {
              resolver.forget(op.pool(), op.block());
              return new BodyPuller(
                  op,
                  preamble,
                  control,
                  (prefix, first) -> new LivePull(node, prefix, first),
                  node.settings().pullTimeoutMs(),
                  () -> readTimeoutMs);
            });
  }

  @Override
  public ReadableByteChannel getInputStreamChannel() {
    return null;
  }

  @Override
  public void setReadTimeout(int timeoutMs) throws IOException {
    readTimeoutMs = timeoutMs;
    stock.setReadTimeout(timeoutMs);
  }

  @Override
  public void setWriteTimeout(int timeoutMs) throws IOException {
    stock.setWriteTimeout(timeoutMs);
  }

  @Override
  public int getReceiveBufferSize() throws IOException {
    return stock.getReceiveBufferSize();
  }

  @Override
  public boolean getTcpNoDelay() throws IOException {
    return stock.getTcpNoDelay();
  }

  /** Also true once stock code has closed the output alone. */
  @Override
  public boolean isClosed() {
    return closed || stock.isClosed();
  }

  @Override
  public void close() throws IOException {
    if (closed) {
      return;
    }
    closed = true;
    try {
      stock.close();
    } finally {
      in.close();
      StatsFile.changed(node.settings().statsFile());
    }
  }

  @Override
  public String getRemoteAddressString() {
    return remote;
  }

  @Override
  public String getLocalAddressString() {
    return local;
  }

  @Override
  public InputStream getInputStream() {
    return in;
  }

  @Override
  public OutputStream getOutputStream() throws IOException {
    return stock.getOutputStream();
  }

  @Override
  public boolean isLocal() {
    return stock.isLocal();
  }

  @Override
  public DomainSocket getDomainSocket() {
    return null;
  }

  @Override
  public boolean hasSecureChannel() {
    return false;
  }

  @Override
  public String toString() {
    return "NamedPeer(" + remote + ")";
  }
}

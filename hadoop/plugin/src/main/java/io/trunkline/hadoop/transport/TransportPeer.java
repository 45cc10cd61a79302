package io.trunkline.hadoop.transport;

import io.trunkline.hadoop.stats.StatsFile;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.channels.ReadableByteChannel;
import java.util.concurrent.atomic.AtomicBoolean;
import org.apache.hadoop.hdfs.net.Peer;
import org.apache.hadoop.net.unix.DomainSocket;

/**
 * A connection that a transport has accepted, as stock DataXceiver sees it: what it is whichever
 * way the bytes come.
 */
public abstract class TransportPeer implements Peer {
  private final InetSocketAddress remote;
  private final InetSocketAddress local;
  private final String statsFile;
  private final AtomicBoolean closed = new AtomicBoolean();

  /**
   * A peer.
   *
   * @param remote who has connected, null when the connection has gone already
   * @param local this end of it, null when it has gone already
   * @param statsFile written anew when the connection ends, empty for none
   * @throws IOException when the connection has gone already
   */
  protected TransportPeer(SocketAddress remote, SocketAddress local, String statsFile)
      throws IOException {
    if (remote == null || local == null) {
      throw new IOException("connection has gone before it was accepted");
    }
    this.remote = (InetSocketAddress) remote;
    this.local = (InetSocketAddress) local;
    this.statsFile = statsFile;
  }

  /**
   * Whether the connection is still open; stock code may have closed one of its streams alone.
   *
   * @return false once either end of it is closed
   */
  protected abstract boolean isOpen();

  /**
   * Ends the connection. It is called once.
   *
   * @throws IOException when it does not end as it should
   */
  protected abstract void disconnect() throws IOException;

  @Override
  public final boolean isClosed() {
    return closed.get() || !isOpen();
  }

  @Override
  public final void close() throws IOException {
    if (closed.compareAndSet(false, true)) {
      try {
        disconnect();
      } finally {
        StatsFile.changed(statsFile);
      }
    }
  }

  /** Stock DataXceiver reads by stream. */
  @Override
  public final ReadableByteChannel getInputStreamChannel() {
    return null;
  }

  @Override
  public final String getRemoteAddressString() {
    return remote.toString();
  }

  @Override
  public final String getLocalAddressString() {
    return local.toString();
  }

  @Override
  public final boolean isLocal() {
    return remote.getAddress().equals(local.getAddress());
  }

  @Override
  public final DomainSocket getDomainSocket() {
    return null;
  }

  /** Most transports leave that to stock code. */
  @Override
  public boolean hasSecureChannel() {
    return false;
  }

  @Override
  public final String toString() {
    return getClass().getSimpleName() + "(" + remote + ")";
  }
}

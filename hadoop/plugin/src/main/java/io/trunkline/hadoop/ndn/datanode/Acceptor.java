package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.conf.Setting;
import io.trunkline.hadoop.transport.AcceptLoop;
import io.trunkline.hadoop.transport.PeerHandoff;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;

/** Listener of named data's TCP connections. */
final class Acceptor implements AutoCloseable {
  private static final int BACKLOG = 256;

  private final ServerSocketChannel listener;
  private final AcceptLoop<SocketChannel> loop;

  /**
   * Starts to listen.
   *
   * @param address where
   * @param peers make what stock code sees of a connection
   * @param handoff takes the connections
   * @throws IOException when the address cannot be had
   */
  Acceptor(InetSocketAddress address, AcceptLoop.Peers<SocketChannel> peers, PeerHandoff handoff)
      throws IOException {
    listener = ServerSocketChannel.open();
    try {
      listener.setOption(StandardSocketOptions.SO_REUSEADDR, true);
      listener.bind(address, BACKLOG);
    } catch (IOException e) {
      listener.close();
      throw new IOException(
          Setting.DATANODE_ADDRESS.key() + " = " + address + ": " + e.getMessage(), e);
    }
    AcceptLoop.Listener<SocketChannel> source =
        new AcceptLoop.Listener<>() {
          @Override
          public SocketChannel accept() throws IOException {
            return listener.accept();
          }

          @Override
          public boolean isOpen() {
            return listener.isOpen();
          }

          @Override
          public void close() throws IOException {
            listener.close();
          }
        };
    loop = new AcceptLoop<>("trunkline-acceptor", source, peers, handoff);
  }

  /** Where it listens. */
  InetSocketAddress address() throws IOException {
    return (InetSocketAddress) listener.getLocalAddress();
  }

  /** Accepts no more; connections that are open go on. */
  @Override
  public void close() {
    loop.close();
  }
}

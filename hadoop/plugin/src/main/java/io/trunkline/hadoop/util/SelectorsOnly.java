package io.trunkline.hadoop.util;

import java.net.ProtocolFamily;
import java.nio.channels.DatagramChannel;
import java.nio.channels.Pipe;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.SelectorProvider;

/**
 * A provider of selectors for channels of our own, which are made elsewhere. Hadoop keeps a pool of
 * selectors for each provider, so there should be one of a kind.
 */
public abstract class SelectorsOnly extends SelectorProvider {
  @Override
  public DatagramChannel openDatagramChannel() {
    throw refused();
  }

  @Override
  public DatagramChannel openDatagramChannel(ProtocolFamily family) {
    throw refused();
  }

  @Override
  public Pipe openPipe() {
    throw refused();
  }

  @Override
  public ServerSocketChannel openServerSocketChannel() {
    throw refused();
  }

  @Override
  public SocketChannel openSocketChannel() {
    throw refused();
  }

  /** The channels of such a provider exist already, connected, when they are given to Hadoop. */
  private UnsupportedOperationException refused() {
    return new UnsupportedOperationException(
        getClass().getSimpleName()
            + " provides selectors; its channels are opened by their transport");
  }
}

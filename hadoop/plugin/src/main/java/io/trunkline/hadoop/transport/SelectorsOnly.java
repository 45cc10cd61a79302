package io.trunkline.hadoop.transport;

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
    throw new UnsupportedOperationException("selectors only");
  }

  @Override
  public DatagramChannel openDatagramChannel(ProtocolFamily family) {
    throw new UnsupportedOperationException("selectors only");
  }

  @Override
  public Pipe openPipe() {
    throw new UnsupportedOperationException("selectors only");
  }

  @Override
  public ServerSocketChannel openServerSocketChannel() {
    throw new UnsupportedOperationException("selectors only");
  }

  @Override
  public SocketChannel openSocketChannel() {
    throw new UnsupportedOperationException("selectors only");
  }
}

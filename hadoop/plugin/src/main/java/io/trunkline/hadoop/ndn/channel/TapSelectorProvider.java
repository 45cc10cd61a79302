package io.trunkline.hadoop.ndn.channel;

import java.io.IOException;
import java.net.ProtocolFamily;
import java.nio.channels.DatagramChannel;
import java.nio.channels.Pipe;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.AbstractSelector;
import java.nio.channels.spi.SelectorProvider;

/**
 * Provider of {@link TapChannel}s' selectors. There is one, since Hadoop keeps a pool of selectors
 * for each provider.
 */
final class TapSelectorProvider extends SelectorProvider {
  static final TapSelectorProvider INSTANCE = new TapSelectorProvider();

  private TapSelectorProvider() {}

  @Override
  public AbstractSelector openSelector() throws IOException {
    return new TapSelector(this, Selector.open());
  }

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

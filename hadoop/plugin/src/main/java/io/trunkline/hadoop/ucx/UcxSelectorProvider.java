package io.trunkline.hadoop.ucx;

import java.net.ProtocolFamily;
import java.nio.channels.DatagramChannel;
import java.nio.channels.Pipe;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.AbstractSelector;
import java.nio.channels.spi.SelectorProvider;

/** Provider of the selectors of {@link UcxChannel}s; one, since Hadoop pools them by provider. */
final class UcxSelectorProvider extends SelectorProvider {
  static final UcxSelectorProvider INSTANCE = new UcxSelectorProvider();

  private UcxSelectorProvider() {}

  @Override
  public AbstractSelector openSelector() {
    return new UcxSelector(this);
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

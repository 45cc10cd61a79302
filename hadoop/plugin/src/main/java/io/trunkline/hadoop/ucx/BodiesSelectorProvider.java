package io.trunkline.hadoop.ucx;

import io.trunkline.hadoop.util.SelectorsOnly;
import java.io.IOException;
import java.nio.channels.Selector;
import java.nio.channels.spi.AbstractSelector;

/** Provider of {@link BodiesChannel}s' selectors. */
final class BodiesSelectorProvider extends SelectorsOnly {
  static final BodiesSelectorProvider INSTANCE = new BodiesSelectorProvider();

  private BodiesSelectorProvider() {}

  @Override
  public AbstractSelector openSelector() throws IOException {
    return new BodiesSelector(this, Selector.open(), UcxSelectorProvider.INSTANCE.openSelector());
  }
}

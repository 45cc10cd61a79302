package io.trunkline.hadoop.tap;

import io.trunkline.hadoop.util.SelectorsOnly;
import java.io.IOException;
import java.nio.channels.Selector;
import java.nio.channels.spi.AbstractSelector;

/** Provider of {@link TapChannel}s' selectors. */
final class TapSelectorProvider extends SelectorsOnly {
  static final TapSelectorProvider INSTANCE = new TapSelectorProvider();

  private TapSelectorProvider() {}

  @Override
  public AbstractSelector openSelector() throws IOException {
    return new TapSelector(this, Selector.open());
  }
}

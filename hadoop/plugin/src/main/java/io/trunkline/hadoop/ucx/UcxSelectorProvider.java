package io.trunkline.hadoop.ucx;

import io.trunkline.hadoop.util.SelectorsOnly;
import java.nio.channels.spi.AbstractSelector;

/** Provider of {@link UcxChannel}s' selectors. */
final class UcxSelectorProvider extends SelectorsOnly {
  static final UcxSelectorProvider INSTANCE = new UcxSelectorProvider();

  private UcxSelectorProvider() {}

  @Override
  public AbstractSelector openSelector() {
    return new UcxSelector(this);
  }
}

package io.trunkline.hadoop.tap;

import java.io.IOException;
import java.nio.channels.CancelledKeyException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.spi.AbstractSelectableChannel;
import java.nio.channels.spi.AbstractSelectionKey;
import java.nio.channels.spi.AbstractSelector;
import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Selects {@link TapChannel}s by selecting the real channels under them with a real selector. A
 * cancelled key must have left the real selector before its channel can be registered again, so
 * each selection first passes the cancellations on. A channel that has read ahead is readable
 * whatever the real one says.
 */
final class TapSelector extends AbstractSelector {
  private final Selector real;
  private final Set<SelectionKey> keys = ConcurrentHashMap.newKeySet();
  private final Set<SelectionKey> selected = new HashSet<>();

  TapSelector(TapSelectorProvider provider, Selector real) {
    super(provider);
    this.real = real;
  }

  /** A key of a tap channel, over the key of the real one. */
  private static final class Key extends AbstractSelectionKey {
    private final TapSelector selector;
    private final TapChannel channel;
    private final SelectionKey real;

    Key(TapSelector selector, TapChannel channel, SelectionKey real) {
      this.selector = selector;
      this.channel = channel;
      this.real = real;
    }

    @Override
    public TapChannel channel() {
      return channel;
    }

    @Override
    public Selector selector() {
      return selector;
    }

    @Override
    public int interestOps() {
      return real.interestOps();
    }

    @Override
    public SelectionKey interestOps(int ops) {
      real.interestOps(ops);
      return this;
    }

    @Override
    public int readyOps() {
      return real.readyOps() | (hasPending() ? OP_READ : 0);
    }

    private boolean hasPending() {
      return channel.pending() && real.isValid() && (real.interestOps() & OP_READ) != 0;
    }
  }

  @Override
  protected SelectionKey register(AbstractSelectableChannel channel, int ops, Object attachment) {
    TapChannel tap = (TapChannel) channel;
    try {
      SelectionKey realKey = tap.real().register(real, ops);
      Key key = new Key(this, tap, realKey);
      realKey.attach(key);
      key.attach(attachment);
      keys.add(key);
      return key;
    } catch (ClosedChannelException e) {
      throw new CancelledKeyException();
    }
  }

  /** Returns whether there were any. */
  private boolean passCancellationsOn() {
    Set<SelectionKey> cancelled = cancelledKeys();
    synchronized (cancelled) {
      if (cancelled.isEmpty()) {
        return false;
      }
      for (Iterator<SelectionKey> all = cancelled.iterator(); all.hasNext(); ) {
        Key key = (Key) all.next();
        all.remove();
        key.real.cancel();
        keys.remove(key);
        selected.remove(key);
        deregister(key);
      }
      return true;
    }
  }

  private int collect() {
    int count = 0;
    Set<SelectionKey> realSelected = real.selectedKeys();
    for (SelectionKey key : keys) {
      if (realSelected.contains(((Key) key).real) || ((Key) key).hasPending()) {
        selected.add(key);
        count++;
      }
    }
    realSelected.clear();
    return count;
  }

  @Override
  public synchronized int selectNow() throws IOException {
    passCancellationsOn();
    real.selectNow();
    return collect();
  }

  @Override
  public synchronized int select(long timeoutMs) throws IOException {
    if (passCancellationsOn()) {
      real.selectNow();
    }
    int ready = collect();
    if (ready > 0) {
      return ready;
    }
    real.select(timeoutMs);
    return collect();
  }

  @Override
  public int select() throws IOException {
    return select(0);
  }

  @Override
  public Set<SelectionKey> keys() {
    return Collections.unmodifiableSet(keys);
  }

  @Override
  public Set<SelectionKey> selectedKeys() {
    return selected;
  }

  @Override
  public Selector wakeup() {
    real.wakeup();
    return this;
  }

  @Override
  protected void implCloseSelector() throws IOException {
    real.wakeup();
    synchronized (this) {
      for (SelectionKey key : keys) {
        deregister((AbstractSelectionKey) key);
      }
      keys.clear();
      selected.clear();
      real.close();
    }
  }
}

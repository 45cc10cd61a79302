package io.trunkline.hadoop.ucx;

import java.io.IOException;
import java.nio.channels.CancelledKeyException;
import java.nio.channels.ClosedSelectorException;
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

/** Selects {@link UcxChannel}s. The selecting thread drives the worker of its first channel. */
final class UcxSelector extends AbstractSelector {
  private final Set<Key> keys = ConcurrentHashMap.newKeySet();
  private final Set<SelectionKey> selected = new HashSet<>();
  private volatile boolean woken;

  private final Waiter waiter =
      new Waiter() {
        @Override
        boolean ready() {
          return woken || !isOpen() || anyReady();
        }
      };

  UcxSelector(UcxSelectorProvider provider) {
    super(provider);
  }

  private static final class Key extends AbstractSelectionKey {
    private final UcxSelector selector;
    private final UcxChannel channel;
    private volatile int interest;
    private volatile int ready;

    Key(UcxSelector selector, UcxChannel channel, int interest) {
      this.selector = selector;
      this.channel = channel;
      this.interest = interest;
    }

    int readyNow() {
      int now = 0;
      if ((interest & OP_READ) != 0 && channel.stream().readable()) {
        now |= OP_READ;
      }
      if ((interest & OP_WRITE) != 0 && channel.stream().writable()) {
        now |= OP_WRITE;
      }
      return now;
    }

    @Override
    public UcxChannel channel() {
      return channel;
    }

    @Override
    public Selector selector() {
      return selector;
    }

    @Override
    public int interestOps() {
      check();
      return interest;
    }

    @Override
    public SelectionKey interestOps(int ops) {
      check();
      if ((ops & ~channel.validOps()) != 0) {
        throw new IllegalArgumentException("operations " + ops);
      }
      interest = ops;
      return this;
    }

    @Override
    public int readyOps() {
      check();
      return ready;
    }

    private void check() {
      if (!isValid()) {
        throw new CancelledKeyException();
      }
    }
  }

  private boolean anyReady() {
    for (Key key : keys) {
      if (!key.isValid() || key.readyNow() != 0) {
        return true;
      }
    }
    return false;
  }

  @Override
  protected SelectionKey register(AbstractSelectableChannel channel, int ops, Object attachment) {
    if (!isOpen()) {
      throw new ClosedSelectorException();
    }
    Key key = new Key(this, (UcxChannel) channel, ops);
    key.attach(attachment);
    keys.add(key);
    return key;
  }

  private void dropCancelled() {
    Set<SelectionKey> cancelled = cancelledKeys();
    synchronized (cancelled) {
      for (Iterator<SelectionKey> all = cancelled.iterator(); all.hasNext(); ) {
        Key key = (Key) all.next();
        all.remove();
        keys.remove(key);
        selected.remove(key);
        deregister(key);
      }
    }
  }

  private int collect() {
    int count = 0;
    for (Key key : keys) {
      int ready = key.readyNow();
      if (ready == 0) {
        continue;
      }
      key.ready = selected.contains(key) ? key.ready | ready : ready;
      selected.add(key);
      count++;
    }
    return count;
  }

  @Override
  public int selectNow() throws IOException {
    return select(UcxNode.deadline(0), false);
  }

  @Override
  public int select(long timeoutMs) throws IOException {
    return select(UcxNode.deadline(timeoutMs), true);
  }

  @Override
  public int select() throws IOException {
    return select(0);
  }

  private synchronized int select(long deadlineNanos, boolean wait) {
    if (!isOpen()) {
      throw new ClosedSelectorException();
    }
    dropCancelled();
    int count = collect();
    if (count == 0 && wait && !woken) {
      boolean inTime;
      begin();
      try {
        inTime = await(deadlineNanos);
      } finally {
        end();
      }
      dropCancelled();
      count = isOpen() ? collect() : 0;
      if (!inTime && count == 0 && !Thread.currentThread().isInterrupted()) {
        readersAreOverdue();
      }
    }
    woken = false;
    return count;
  }

  /** Stock streams wait here for as long as they may, and do not come back after that. */
  private void readersAreOverdue() {
    for (Key key : keys) {
      if ((key.interest & SelectionKey.OP_READ) != 0) {
        key.channel.stream().overdue();
      }
    }
  }

  /** Returns false when the deadline has passed, or the thread was interrupted, before. */
  private boolean await(long deadlineNanos) {
    IoWorker worker = null;
    for (Key key : keys) {
      key.channel.stream().watch(waiter, (key.interest & SelectionKey.OP_READ) != 0);
      worker = worker == null ? key.channel.stream().worker() : worker;
    }
    try {
      if (worker != null) {
        return worker.await(waiter, deadlineNanos);
      }
      Waiter.park(waiter, deadlineNanos);
      return waiter.ready();
    } finally {
      for (Key key : keys) {
        key.channel.stream().unwatch(waiter, (key.interest & SelectionKey.OP_READ) != 0);
      }
    }
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
    woken = true;
    waiter.wake();
    return this;
  }

  @Override
  protected void implCloseSelector() {
    waiter.wake();
    synchronized (this) {
      for (Key key : keys) {
        deregister(key);
      }
      keys.clear();
      selected.clear();
    }
  }
}

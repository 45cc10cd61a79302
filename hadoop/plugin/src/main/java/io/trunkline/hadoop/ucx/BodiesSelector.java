package io.trunkline.hadoop.ucx;

import java.io.IOException;
import java.nio.channels.CancelledKeyException;
import java.nio.channels.ClosedChannelException;
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
import java.util.concurrent.TimeUnit;

/**
 * Selects {@link BodiesChannel}s: with a selector of TCP's or of UCX's, whichever an operation
 * waits for. Stock code selects one operation of one channel at a time; where some wait for the one
 * and some for the other, the two take turns.
 */
final class BodiesSelector extends AbstractSelector {
  private static final long TURN_MS = 1;

  private final Selector tcp;
  private final Selector ucx;
  private final Set<Key> keys = ConcurrentHashMap.newKeySet();
  private final Set<SelectionKey> selected = new HashSet<>();
  private volatile boolean woken;

  BodiesSelector(BodiesSelectorProvider provider, Selector tcp, Selector ucx) {
    super(provider);
    this.tcp = tcp;
    this.ucx = ucx;
  }

  /** A key, and those of the two channels under it, which are made when they are first needed. */
  private static final class Key extends AbstractSelectionKey {
    private final BodiesSelector selector;
    private final BodiesChannel channel;
    private volatile int interest;
    private volatile int ready;
    private SelectionKey tcpKey;
    private SelectionKey ucxKey;

    Key(BodiesSelector selector, BodiesChannel channel, int interest) {
      this.selector = selector;
      this.channel = channel;
      this.interest = interest;
    }

    /** Those of its operations that wait for UCX now. */
    int waitingForUcx() {
      int ops = 0;
      for (int op : new int[] {OP_READ, OP_WRITE}) {
        if ((interest & op) != 0 && channel.waitsForUcx(op)) {
          ops |= op;
        }
      }
      return ops;
    }

    int pending() {
      return (interest & OP_READ) != 0 && channel.pending() ? OP_READ : 0;
    }

    @Override
    public BodiesChannel channel() {
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

  @Override
  protected SelectionKey register(AbstractSelectableChannel channel, int ops, Object attachment) {
    if (!isOpen()) {
      throw new ClosedSelectorException();
    }
    Key key = new Key(this, (BodiesChannel) channel, ops);
    key.attach(attachment);
    keys.add(key);
    return key;
  }

  private void dropCancelled() throws IOException {
    boolean tcpToo = false;
    boolean ucxToo = false;
    Set<SelectionKey> cancelled = cancelledKeys();
    synchronized (cancelled) {
      for (Iterator<SelectionKey> all = cancelled.iterator(); all.hasNext(); ) {
        Key key = (Key) all.next();
        all.remove();
        keys.remove(key);
        selected.remove(key);
        deregister(key);
        tcpToo |= cancel(key.tcpKey);
        ucxToo |= cancel(key.ucxKey);
      }
    }
    if (tcpToo) {
      tcp.selectNow();
    }
    if (ucxToo) {
      ucx.selectNow();
    }
  }

  private static boolean cancel(SelectionKey key) {
    if (key != null) {
      key.cancel();
    }
    return key != null;
  }

  /** Has each of the two look for what waits for it; says whether any does for TCP, and for UCX. */
  private boolean[] enlist() {
    boolean[] any = new boolean[2];
    for (Key key : keys) {
      try {
        int byUcx = key.waitingForUcx();
        int byTcp = key.interest & ~byUcx;
        key.tcpKey = enlist(key.tcpKey, key.channel.tcp(), tcp, byTcp);
        key.ucxKey = enlist(key.ucxKey, key.channel.ucx(), ucx, byUcx);
        any[0] |= byTcp != 0;
        any[1] |= byUcx != 0;
      } catch (ClosedChannelException | CancelledKeyException e) {
        key.cancel(); // closed meanwhile
      }
    }
    return any;
  }

  private static SelectionKey enlist(
      SelectionKey key, AbstractSelectableChannel channel, Selector with, int ops)
      throws ClosedChannelException {
    if (key != null) {
      return key.interestOps(ops);
    }
    return ops == 0 ? null : channel.register(with, ops);
  }

  private int collect() {
    int count = 0;
    for (Key key : keys) {
      int ready = key.pending() | ready(key.tcpKey, tcp) | ready(key.ucxKey, ucx);
      if (ready == 0 && key.isValid()) {
        continue;
      }
      key.ready = selected.contains(key) ? key.ready | ready : ready;
      selected.add(key);
      count++;
    }
    tcp.selectedKeys().clear();
    ucx.selectedKeys().clear();
    return count;
  }

  private static int ready(SelectionKey key, Selector by) {
    return key != null && by.selectedKeys().contains(key) && key.isValid() ? key.readyOps() : 0;
  }

  private boolean anyPending() {
    for (Key key : keys) {
      if (key.pending() != 0) {
        return true;
      }
    }
    return false;
  }

  @Override
  public int selectNow() throws IOException {
    return select(0, false);
  }

  @Override
  public int select(long timeoutMs) throws IOException {
    return select(timeoutMs, true);
  }

  @Override
  public int select() throws IOException {
    return select(0);
  }

  private synchronized int select(long timeoutMs, boolean mayWait) throws IOException {
    if (!isOpen()) {
      throw new ClosedSelectorException();
    }
    long deadline = UcxNode.deadline(timeoutMs);
    dropCancelled();
    boolean[] any = enlist();
    boolean wait = mayWait && !anyPending() && !woken;
    int count;
    do {
      long leftMs = wait ? leftMs(deadline) : 0;
      wait &= leftMs >= 0;
      look(any, wait, Math.max(leftMs, 0));
      count = isOpen() ? collect() : 0;
      wait &= !woken && isOpen() && !Thread.currentThread().isInterrupted();
    } while (count == 0 && wait);
    if (mayWait && count == 0 && !woken && !Thread.currentThread().isInterrupted()) {
      readersAreOverdue();
    }
    woken = false;
    return count;
  }

  /** 0 for ever, negative when it has passed. */
  private static long leftMs(long deadlineNanos) {
    if (deadlineNanos == IoWorker.NO_DEADLINE) {
      return 0;
    }
    long left = deadlineNanos - System.nanoTime();
    return left <= 0 ? -1 : TimeUnit.NANOSECONDS.toMillis(left) + 1;
  }

  private void look(boolean[] any, boolean wait, long timeoutMs) throws IOException {
    boolean both = any[0] && any[1];
    if (any[1]) {
      if (wait && !both) {
        ucx.select(timeoutMs);
        return;
      }
      ucx.selectNow();
    }
    if (wait) {
      tcp.select(both ? TURN_MS : timeoutMs);
    } else if (any[0]) {
      tcp.selectNow();
    }
  }

  /** Stock streams wait here for as long as they may, and do not come back after that. */
  private void readersAreOverdue() {
    for (Key key : keys) {
      if ((key.interest & SelectionKey.OP_READ) != 0) {
        key.channel.overdue();
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
    tcp.wakeup();
    ucx.wakeup();
    return this;
  }

  @Override
  protected void implCloseSelector() throws IOException {
    tcp.wakeup();
    ucx.wakeup();
    synchronized (this) {
      for (Key key : keys) {
        deregister(key);
      }
      keys.clear();
      selected.clear();
      tcp.close();
      ucx.close();
    }
  }
}

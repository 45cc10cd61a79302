package io.trunkline.hadoop.transport;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Finds out whether a DataNode takes data by a transport, and where, and remembers the answer. What
 * was not answered is remembered too, for longer each time, so that a cluster without the plug-in,
 * or a plane that is dead, is not asked at each block.
 */
public final class Discovery {
  /** Asks a DataNode; the edge toward the network. */
  @FunctionalInterface
  public interface Question {
    /**
     * Asks.
     *
     * @param dataNode the DataNode's stock data-transfer address
     * @return an encoded {@link DataNodeRecord}
     * @throws IOException when it does not answer; the message says what was asked
     */
    byte[] ask(InetSocketAddress dataNode) throws IOException;
  }

  /**
   * An answer.
   *
   * @param found whether the DataNode answered at all
   * @param plugin where its plug-in listens, null when it takes no data
   * @param reason why it takes none, empty when it does
   */
  public record Route(boolean found, InetSocketAddress plugin, String reason) {}

  /** Guarded by itself, but for {@code misses}, which may be reset while somebody asks. */
  private static final class Entry {
    private Route route;
    private long expiresNanos;
    private volatile int misses;
  }

  private static final long FOUND_NANOS = TimeUnit.SECONDS.toNanos(30);
  private static final long FIRST_MISS_NANOS = TimeUnit.SECONDS.toNanos(1);
  private static final int MAX_DOUBLINGS = 6;
  private static final int MAX_ENTRIES = 65536;

  private final Question question;
  private final LongSupplier nanoClock;
  private final ConcurrentHashMap<InetSocketAddress, Entry> entries = new ConcurrentHashMap<>();

  /**
   * A discovery.
   *
   * @param question the edge toward the network
   * @param nanoClock monotonic clock in nanoseconds
   */
  public Discovery(Question question, LongSupplier nanoClock) {
    this.question = question;
    this.nanoClock = nanoClock;
  }

  /**
   * Where data for a DataNode goes. Callers for the same DataNode wait for one question.
   *
   * @param transfer the DataNode's stock data-transfer address
   * @return the route
   */
  public Route route(InetSocketAddress transfer) {
    if (entries.size() >= MAX_ENTRIES) {
      entries.clear();
    }
    Entry entry = entries.computeIfAbsent(transfer, a -> new Entry());
    synchronized (entry) {
      long now = nanoClock.getAsLong();
      if (entry.route == null || now - entry.expiresNanos >= 0) {
        ask(transfer, entry);
      }
      return entry.route;
    }
  }

  /**
   * A DataNode's plug-in did not answer where it was said to listen: it is asked anew.
   *
   * @param transfer the DataNode's stock data-transfer address
   */
  public void forget(InetSocketAddress transfer) {
    Entry entry = entries.get(transfer);
    if (entry != null) {
      synchronized (entry) {
        entry.route = null;
      }
    }
  }

  /**
   * The plug-in of a DataNode takes connections: the next silence is its first again. An answer
   * alone does not show that, as a firewall may let questions through and no connections.
   *
   * @param transfer the DataNode's stock data-transfer address
   */
  public void reached(InetSocketAddress transfer) {
    Entry entry = entries.get(transfer);
    if (entry != null) {
      entry.misses = 0;
    }
  }

  /**
   * Remembers that the plug-in of a DataNode takes no connection where it says it listens, for as
   * long as silence is remembered: few operations are to wait for a connection that will not be.
   *
   * @param transfer the DataNode's stock data-transfer address
   * @param reason what happened
   */
  public void lost(InetSocketAddress transfer, String reason) {
    Entry entry = entries.computeIfAbsent(transfer, a -> new Entry());
    synchronized (entry) {
      missed(entry, reason);
    }
  }

  private void missed(Entry entry, String reason) {
    entry.route = new Route(false, null, reason);
    entry.expiresNanos =
        nanoClock.getAsLong() + (FIRST_MISS_NANOS << Math.min(entry.misses, MAX_DOUBLINGS));
    entry.misses = Math.min(entry.misses, MAX_DOUBLINGS) + 1;
  }

  private void ask(InetSocketAddress transfer, Entry entry) {
    String miss = "";
    DataNodeRecord found = null;
    try {
      found = DataNodeRecord.decode(question.ask(transfer));
    } catch (IOException e) {
      miss = e.getMessage();
    }
    if (found == null) {
      missed(entry, miss);
      return;
    }
    entry.expiresNanos = nanoClock.getAsLong() + FOUND_NANOS;
    if (!found.served()) {
      entry.route = new Route(true, null, found.reason());
    } else if (found.address().isEmpty()) {
      entry.route = new Route(true, new InetSocketAddress(transfer.getAddress(), found.port()), "");
    } else {
      entry.route = new Route(true, new InetSocketAddress(found.address(), found.port()), "");
    }
  }
}

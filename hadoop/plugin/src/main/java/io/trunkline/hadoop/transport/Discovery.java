package io.trunkline.hadoop.transport;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
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
     * @return what it says
     * @throws IOException when it does not answer, or makes no sense; the message says what was
     *     asked
     */
    DataNodeRecord ask(InetSocketAddress dataNode) throws IOException;

    /**
     * Asks once more, past whoever has answered, as the answer leads nowhere: somebody else may
     * have given it.
     *
     * @param dataNode the DataNode's stock data-transfer address
     * @return what another says, null when there is none
     * @throws IOException when that makes no sense
     */
    default DataNodeRecord askPast(InetSocketAddress dataNode) throws IOException {
      return null;
    }
  }

  /** What is known of a DataNode. */
  public enum Outcome {
    /** Its plug-in takes data. */
    SERVED,
    /** It says that it takes none. */
    REFUSED,
    /** Its plug-in speaks another version. */
    OTHER_VERSION,
    /** Who answered for it names another host: nobody is to be sent there. */
    OTHER_HOST,
    /** Nobody answered, or nothing that makes sense. */
    SILENT,
    /** Its plug-in takes no connection. */
    UNREACHABLE
  }

  /**
   * An answer.
   *
   * @param outcome what is known
   * @param plugin where its plug-in listens, null unless it takes data
   * @param reason why it takes none, empty when it does
   * @param secured whether it takes connections alone that are made secure by a block token
   * @param split where it takes connections that go by two ways, null when it does not
   */
  public record Route(
      Outcome outcome,
      InetSocketAddress plugin,
      String reason,
      boolean secured,
      DataNodeRecord.Split split) {
    private static Route none(Outcome outcome, String reason) {
      return new Route(outcome, null, reason, false, null);
    }
  }

  /** Guarded by itself, but for what may be reset while somebody asks. */
  private static final class Entry {
    private Route route;

    /**
     * What led nowhere the last time, to be asked past; null once something has led to a plug-in.
     */
    private volatile Route doubtful;

    private long expiresNanos;
    private volatile int misses;
  }

  private static final long FOUND_NANOS = TimeUnit.SECONDS.toNanos(30);
  private static final long FIRST_MISS_NANOS = TimeUnit.SECONDS.toNanos(1);
  private static final int MAX_DOUBLINGS = 6;
  private static final int MAX_ENTRIES = 65536;

  private final Question question;
  private final int version;
  private final LongSupplier nanoClock;
  private final ConcurrentHashMap<InetSocketAddress, Entry> entries = new ConcurrentHashMap<>();

  /**
   * A discovery.
   *
   * @param question the edge toward the network
   * @param version what this side speaks on a connection by that transport
   * @param nanoClock monotonic clock in nanoseconds
   */
  public Discovery(Question question, int version, LongSupplier nanoClock) {
    this.question = question;
    this.version = version;
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
   * A DataNode's plug-in did not answer where it was said to listen: it is asked anew, and past
   * whoever answered if that is the same answer.
   *
   * @param transfer the DataNode's stock data-transfer address
   * @param doubtful what led nowhere
   */
  public void forget(InetSocketAddress transfer, Route doubtful) {
    Entry entry = entries.get(transfer);
    if (entry != null) {
      synchronized (entry) {
        forget(entry, doubtful);
      }
    }
  }

  private static void forget(Entry entry, Route doubtful) {
    entry.doubtful = doubtful;
    if (doubtful.equals(entry.route)) {
      entry.route = null;
    }
  }

  /**
   * Where data for a DataNode goes, if what is known of it can't be right, as it does not fit what
   * the NameNode says: that is asked past, once for as long as an answer is remembered.
   *
   * @param transfer the DataNode's stock data-transfer address
   * @param doubtful what is known of it
   * @return the route, which may be the doubtful one
   */
  public Route insteadOf(InetSocketAddress transfer, Route doubtful) {
    Entry entry = entries.computeIfAbsent(transfer, a -> new Entry());
    synchronized (entry) {
      if (!doubtful.equals(entry.doubtful)) {
        forget(entry, doubtful);
      }
    }
    return route(transfer);
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
      entry.doubtful = null;
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
      missed(entry, Outcome.UNREACHABLE, reason);
    }
  }

  private void missed(Entry entry, Outcome outcome, String reason) {
    entry.route = Route.none(outcome, reason);
    entry.expiresNanos =
        nanoClock.getAsLong() + (FIRST_MISS_NANOS << Math.min(entry.misses, MAX_DOUBLINGS));
    entry.misses = Math.min(entry.misses, MAX_DOUBLINGS) + 1;
  }

  private void ask(InetSocketAddress transfer, Entry entry) {
    Route route;
    try {
      route = route(question.ask(transfer), transfer);
    } catch (IOException e) {
      missed(entry, Outcome.SILENT, e.getMessage());
      return;
    }
    if (route.plugin() == null || route.equals(entry.doubtful)) {
      route = past(transfer, route, entry.doubtful);
    }
    if (route.outcome() == Outcome.OTHER_HOST) {
      missed(entry, route.outcome(), route.reason());
      return;
    }
    entry.route = route;
    entry.expiresNanos = nanoClock.getAsLong() + FOUND_NANOS;
  }

  /** Where another answer leads, if it leads to a plug-in, or else where the doubtful one does. */
  private Route past(InetSocketAddress transfer, Route doubtful, Route alsoDoubtful) {
    try {
      DataNodeRecord other = question.askPast(transfer);
      Route route = other == null ? doubtful : route(other, transfer);
      return route.plugin() == null || route.equals(alsoDoubtful) ? doubtful : route;
    } catch (IOException e) {
      return doubtful;
    }
  }

  private Route route(DataNodeRecord record, InetSocketAddress transfer) {
    if (!record.served()) {
      return Route.none(Outcome.REFUSED, record.reason());
    }
    if (!sameHost(record.address(), transfer.getAddress())) {
      String who = transfer.getAddress().getHostAddress();
      return Route.none(Outcome.OTHER_HOST, record.address() + " for the DataNode at " + who);
    }
    if (record.version() != version) {
      return Route.none(
          Outcome.OTHER_VERSION, "version " + record.version() + ", this side speaks " + version);
    }
    InetAddress host = address(record.address(), transfer.getAddress());
    return new Route(
        Outcome.SERVED,
        new InetSocketAddress(host, record.port()),
        "",
        record.secured(),
        record.split());
  }

  /** Whoever answers for a DataNode may name its own host and no other; loopback is one host. */
  private static boolean sameHost(String named, InetAddress own) {
    InetAddress address = address(named, own);
    return own.equals(address)
        || address != null && own.isLoopbackAddress() && address.isLoopbackAddress();
  }

  /** The address in figures, or null when it is none of this machine's networks. */
  private static InetAddress address(String figures, InetAddress otherwise) {
    try {
      return figures.isEmpty() ? otherwise : InetAddress.getByName(figures);
    } catch (UnknownHostException e) {
      return null;
    }
  }
}

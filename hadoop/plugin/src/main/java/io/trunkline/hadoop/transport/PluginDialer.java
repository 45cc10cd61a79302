package io.trunkline.hadoop.transport;

import io.trunkline.hadoop.stats.Fallback;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Connects to where a DataNode's plug-in says it listens. One that has been started anew listens
 * elsewhere, so a plug-in that is gone is looked for once more.
 */
public final class PluginDialer {
  /** Connects by one transport. */
  @FunctionalInterface
  public interface Connector {
    /**
     * Connects.
     *
     * @param plugin where the plug-in listens
     * @param limitMs how long that may take, in milliseconds
     * @return the channel
     * @throws IOException when it cannot be connected
     */
    SocketChannel connect(InetSocketAddress plugin, int limitMs) throws IOException;
  }

  /**
   * Who listens there is not the DataNode's plug-in, or takes it for another: what led there is
   * asked past. The DataNode is not unreachable for that.
   */
  public static final class Unproven extends IOException {
    private static final long serialVersionUID = 1L;

    private final Fallback reason;

    /**
     * A failure.
     *
     * @param reason what it is called
     * @param cause what has happened
     */
    public Unproven(Fallback reason, IOException cause) {
      super(cause.getMessage(), cause);
      this.reason = reason;
    }
  }

  private final Discovery discovery;
  private final Fallback refused;
  private final int mostMs;
  private final LongSupplier nanoTime;

  /**
   * A dialer.
   *
   * @param discovery knows where plug-ins listen
   * @param refused what it is called when a DataNode says that it may not be served
   * @param mostMs longest that connecting may take, in milliseconds, where stock code allows more
   * @param nanoTime the clock, {@link System#nanoTime}
   */
  public PluginDialer(Discovery discovery, Fallback refused, int mostMs, LongSupplier nanoTime) {
    this.discovery = discovery;
    this.refused = refused;
    this.mostMs = mostMs;
    this.nanoTime = nanoTime;
  }

  /**
   * Connects to the plug-in of a DataNode.
   *
   * @param dial the DataNode and the limits
   * @param connector connects
   * @return the channel
   * @throws NotServed when the DataNode is not found, refuses, or takes no connection
   * @throws IOException when stock code has closed its socket
   */
  public SocketChannel connect(Dial dial, Connector connector) throws NotServed, IOException {
    long limitMs = limitMs(dial, 0);
    long began = nanoTime.getAsLong();
    Discovery.Route route = find(dial.dataNode());
    try {
      return reached(dial, connector.connect(route.plugin(), (int) limitMs));
    } catch (IOException first) {
      refuseAbandoned(dial, first);
      discovery.forget(dial.dataNode(), route);
      Discovery.Route again = find(dial.dataNode());
      long tookMs = TimeUnit.NANOSECONDS.toMillis(nanoTime.getAsLong() - began);
      long leftMs = first instanceof Unproven ? limitMs(dial, tookMs) : limitMs - tookMs;
      if (again.plugin().equals(route.plugin()) || leftMs <= 0) {
        throw unreachable(dial, first);
      }
      try {
        return reached(dial, connector.connect(again.plugin(), (int) leftMs));
      } catch (IOException second) {
        refuseAbandoned(dial, second);
        throw unreachable(dial, second);
      }
    }
  }

  /** Who is not the DataNode may take all the time that he is given: the DataNode has its own. */
  private long limitMs(Dial dial, long tookMs) {
    return dial.timeoutMs() == 0 ? mostMs : Math.min(dial.timeoutMs() - tookMs, mostMs);
  }

  private Discovery.Route find(InetSocketAddress dataNode) throws NotServed {
    Discovery.Route route = discovery.route(dataNode);
    Fallback reason =
        switch (route.outcome()) {
          case SERVED -> null;
          case REFUSED -> refused;
          case OTHER_VERSION -> Fallback.OTHER_VERSION;
          case OTHER_HOST -> Fallback.OTHER_HOST;
          case SILENT -> Fallback.NO_PLUGIN;
          case UNREACHABLE -> Fallback.PLUGIN_UNREACHABLE;
        };
    if (reason != null) {
      throw new NotServed(reason, route.reason());
    }
    return route;
  }

  private SocketChannel reached(Dial dial, SocketChannel channel) {
    discovery.reached(dial.dataNode());
    return channel;
  }

  private static void refuseAbandoned(Dial dial, IOException cause) throws IOException {
    if (dial.abandoned()) {
      throw cause;
    }
  }

  private NotServed unreachable(Dial dial, IOException cause) {
    if (cause instanceof Unproven unproven) {
      return new NotServed(unproven.reason, cause.getMessage());
    }
    discovery.lost(dial.dataNode(), cause.getMessage());
    return new NotServed(Fallback.PLUGIN_UNREACHABLE, cause.getMessage());
  }
}

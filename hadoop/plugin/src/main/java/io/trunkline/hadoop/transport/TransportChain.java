package io.trunkline.hadoop.transport;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.stats.TransferStats;
import java.io.IOException;
import java.nio.channels.SocketChannel;
import java.util.List;

/**
 * The transports of {@code trunkline.transport}, in order. An operation that one refuses goes by
 * the next; this is the place where that is counted and logged.
 */
public final class TransportChain {
  private final List<Transport> inOrder;
  private final Settings settings;
  private final TransferStats stats = TransferStats.get();

  /**
   * A chain.
   *
   * @param settings the settings
   * @param inOrder the transports, tcp last
   */
  public TransportChain(Settings settings, List<Transport> inOrder) {
    this.settings = settings;
    this.inOrder = List.copyOf(inOrder);
  }

  /**
   * The transports.
   *
   * @return in order, tcp last
   */
  public List<Transport> inOrder() {
    return inOrder;
  }

  /**
   * Opens a connection by the first transport that serves.
   *
   * @param dial what stock code wants
   * @return the channel
   * @throws IOException when none can
   */
  public SocketChannel open(Dial dial) throws IOException {
    for (Transport transport : inOrder) {
      try {
        SocketChannel channel = transport.open(dial);
        stats.opened(transport.name());
        return channel;
      } catch (NotServed e) {
        stats.fallback(
            transport.name(),
            settings.transportAfter(transport.name()),
            e.reason(),
            dial.peer(),
            e.getMessage());
      }
    }
    throw new IllegalStateException("tcp serves every connection");
  }
}

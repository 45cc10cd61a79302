package io.trunkline.hadoop.mark;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.conf.TrafficCategory;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import java.io.IOException;
import java.net.Inet4Address;
import java.net.InetAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.NetworkChannel;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The differentiated services code point of a connection's packets, over IPv4 and IPv6. Where the
 * system refuses it the connection goes on without, with one line in the log and a counter.
 */
public final class SocketMark {
  private static final int UNMARKED = -1;

  /** Marks nothing, of what is in no category. */
  public static final SocketMark NONE = new SocketMark(null, UNMARKED);

  private static final Logger LOG = LoggerFactory.getLogger(SocketMark.class);

  /** The two lower bits of the byte are for congestion notification (RFC 3168). */
  private static final int ECN_BITS = 2;

  private static final Set<TrafficCategory> LOGGED = ConcurrentHashMap.newKeySet();

  private final TrafficCategory category;
  private final int dscp;

  private SocketMark(TrafficCategory category, int dscp) {
    this.category = category;
    this.dscp = dscp;
  }

  /**
   * The mark of a category.
   *
   * @param settings say whether there is one, and which
   * @param category the category, null for what is in none
   * @return the mark
   */
  public static SocketMark of(Settings settings, TrafficCategory category) {
    return category == null
        ? NONE
        : new SocketMark(category, settings.dscp(category).orElse(UNMARKED));
  }

  /**
   * What is marked.
   *
   * @return the category, null for what is in none
   */
  public TrafficCategory category() {
    return category;
  }

  /**
   * Whether a socket toward an address can be marked only if it is one of IPv4 alone. A socket of
   * both versions has an option for each, of which Java sets that of IPv6.
   *
   * @param to the address, null where it is not known
   * @return true when the socket is to be opened so
   */
  public boolean needsIpv4Only(InetAddress to) {
    return dscp != UNMARKED && to instanceof Inet4Address;
  }

  /**
   * Marks what is sent from now on. Before the connection is made, its first packet is marked too.
   *
   * @param channel an open TCP socket, connected or not, as {@link #needsIpv4Only} says
   */
  public void set(NetworkChannel channel) {
    if (dscp == UNMARKED) {
      return;
    }
    try {
      channel.setOption(StandardSocketOptions.IP_TOS, dscp << ECN_BITS);
    } catch (ClosedChannelException e) {
      LOG.trace("closed before it was marked", e); // whoever connects it is told
    } catch (IOException e) {
      TransferStats.get().add(Counter.MARKS_REFUSED);
      if (LOGGED.add(category)) {
        LOG.warn(
            "connections of category {} go without a mark: setting DSCP {} failed: {}",
            category.text(),
            dscp,
            e.toString());
      }
    }
  }
}

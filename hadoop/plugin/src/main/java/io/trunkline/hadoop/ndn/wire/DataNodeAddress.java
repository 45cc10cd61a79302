package io.trunkline.hadoop.ndn.wire;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Locale;
import java.util.Set;

/**
 * The address of a DataNode's data transfer, as the two ends of a handshake name it: {@code
 * <host>:<port>}, or two of them with a space between, by address and by name. Where it leads is
 * never looked up: it is compared.
 */
public final class DataNodeAddress {
  /** Longest text of it that is taken, in bytes: an IPv6 address and a longest host name. */
  public static final int MAX_BYTES = 512;

  private DataNodeAddress() {}

  /**
   * One host and port.
   *
   * @param host IP address in figures, or a host name
   * @param port the data-transfer port
   * @return {@code <host>:<port>} in lower case, without the scope that an address has on one host
   */
  public static String of(String host, int port) {
    return host.toLowerCase(Locale.ROOT).replaceFirst("%.*", "") + ':' + port;
  }

  /**
   * What a client is about to connect to.
   *
   * @param transfer the DataNode's data-transfer address, resolved, as the NameNode gave it out
   * @return the IP address, and the host name if it was given one
   */
  public static String of(InetSocketAddress transfer) {
    InetAddress resolved = transfer.getAddress();
    String byAddress = of(resolved.getHostAddress(), transfer.getPort());
    String byName = of(transfer.getHostString(), transfer.getPort());
    String both = byAddress + ' ' + byName;
    return byName.equals(byAddress) || both.length() > MAX_BYTES ? byAddress : both;
  }

  /**
   * The hosts and ports of a text.
   *
   * @param text what a client has said
   * @return each of them
   */
  public static Set<String> all(String text) {
    return new HashSet<>(Arrays.asList(text.split(" ", 2)));
  }
}

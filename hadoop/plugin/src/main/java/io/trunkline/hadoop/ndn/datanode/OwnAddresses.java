package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.ndn.wire.DataNodeAddress;
import java.io.IOException;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.hadoop.hdfs.protocol.DatanodeID;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Under which hosts clients may know a DataNode: the address and the host name that the NameNode
 * gives out, and, where the DataNode listens at all of its addresses, each of these.
 */
final class OwnAddresses {
  private static final Logger LOG = LoggerFactory.getLogger(OwnAddresses.class);

  private final Supplier<DatanodeID> id;
  private final Supplier<Set<String>> further;

  /**
   * Those of a DataNode.
   *
   * @param id how the NameNode knows the DataNode; gives null, or no address, until it does
   * @param further further addresses at which the DataNode's stock port is reached
   */
  OwnAddresses(Supplier<DatanodeID> id, Supplier<Set<String>> further) {
    this.id = id;
    this.further = further;
  }

  /**
   * Addresses of this host at which others may look for it.
   *
   * @return in figures; without those that mean something else on each host
   */
  static Set<String> ofThisHost() {
    Set<String> all = new LinkedHashSet<>();
    try {
      for (NetworkInterface one : Collections.list(NetworkInterface.getNetworkInterfaces())) {
        for (InetAddress address : Collections.list(one.getInetAddresses())) {
          if (!address.isLoopbackAddress() && !address.isLinkLocalAddress()) {
            all.add(address.getHostAddress().replaceFirst("%.*", ""));
          }
        }
      }
    } catch (IOException e) {
      LOG.debug("the addresses of this host are not known: {}", e.toString());
    }
    return all;
  }

  /**
   * The data-transfer port.
   *
   * @return the port, 0 until the NameNode has taken the DataNode in
   */
  int port() {
    DatanodeID known = id.get();
    return known == null || known.getIpAddr() == null ? 0 : known.getXferPort();
  }

  /**
   * The hosts.
   *
   * @return addresses in figures and names, none until the NameNode has taken the DataNode in
   */
  Set<String> hosts() {
    Set<String> hosts = registered();
    if (!hosts.isEmpty()) {
      hosts.addAll(further.get());
    }
    return hosts;
  }

  private Set<String> registered() {
    Set<String> hosts = new LinkedHashSet<>();
    DatanodeID known = id.get();
    if (known == null || known.getIpAddr() == null) {
      return hosts;
    }
    hosts.add(known.getIpAddr());
    String host = known.getHostName();
    if (host != null && !host.isEmpty() && !host.equalsIgnoreCase("localhost")) {
      hosts.add(host);
    }
    return hosts;
  }

  /**
   * Whether a client means this DataNode.
   *
   * @param said what it has said of that, as {@link DataNodeAddress} writes it
   * @return true when one of the addresses is this one's
   */
  boolean include(String said) {
    Set<String> meant = DataNodeAddress.all(said);
    int port = port();
    // Those of the host are looked up anew each time: they are asked for last.
    return anyOf(registered(), port, meant) || anyOf(hosts(), port, meant);
  }

  private static boolean anyOf(Set<String> hosts, int port, Set<String> meant) {
    return hosts.stream().anyMatch(host -> meant.contains(DataNodeAddress.of(host, port)));
  }
}

package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.ndn.Names;
import java.io.IOException;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.util.Collections;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.apache.hadoop.hdfs.protocol.DatanodeID;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Publishes a DataNode's record under every name by which a client may look for it: the address and
 * the host name that the NameNode gives out, and, where the DataNode listens at all of its
 * addresses, each of these. It begins as soon as the NameNode has taken the DataNode in, follows
 * what changes, and tries again what has failed.
 */
final class Announcer implements AutoCloseable {
  /** Where records are published; the edge toward the network. */
  interface Publisher {
    /**
     * Publishes the record.
     *
     * @param name under this name
     * @return what {@link #withdraw} wants
     * @throws IOException when the forwarder refuses
     */
    long publish(String name) throws IOException;

    /**
     * Withdraws it.
     *
     * @param published what {@link #publish} returned
     */
    void withdraw(long published);
  }

  private static final Logger LOG = LoggerFactory.getLogger(Announcer.class);

  /** Hadoop tells a plug-in neither when the DataNode has registered nor when its id changes. */
  private static final long REGISTRATION_CHECK_MS = 50;

  private static final long CHECK_MS = 1000;

  private final Names names;
  private final Supplier<DatanodeID> id;
  private final Supplier<Set<String>> addresses;
  private final Publisher publisher;
  private final Map<String, Long> published = new HashMap<>();
  private final CountDownLatch stopped = new CountDownLatch(1);
  private final Thread thread;
  private boolean failed;

  /**
   * Begins to announce.
   *
   * @param names the cluster's names
   * @param id how the NameNode knows the DataNode; gives null, or no address, until it does
   * @param addresses further addresses at which the DataNode's stock port is reached
   * @param publisher publishes the record
   */
  Announcer(
      Names names, Supplier<DatanodeID> id, Supplier<Set<String>> addresses, Publisher publisher) {
    this.names = names;
    this.id = id;
    this.addresses = addresses;
    this.publisher = publisher;
    thread = new Thread(this::run, "trunkline-announcer");
    thread.setDaemon(true);
    thread.start();
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

  private void run() {
    try {
      do {
        announce();
      } while (!stopped.await(
          published.isEmpty() ? REGISTRATION_CHECK_MS : CHECK_MS, TimeUnit.MILLISECONDS));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    } finally {
      published.values().forEach(publisher::withdraw);
    }
  }

  private void announce() {
    try {
      Set<String> wanted = wanted();
      published
          .entrySet()
          .removeIf(
              old -> {
                boolean gone = !wanted.contains(old.getKey());
                if (gone) {
                  publisher.withdraw(old.getValue());
                }
                return gone;
              });
      for (String name : wanted) {
        if (!published.containsKey(name)) {
          published.put(name, publisher.publish(name));
          LOG.info("named data: this DataNode is found under {}", name);
        }
      }
      failed = false;
    } catch (IOException | RuntimeException e) {
      if (!failed) {
        failed = true;
        LOG.warn(
            "named data: clients cannot find this DataNode and use TCP; retrying: {}",
            e.toString());
      }
    }
  }

  private Set<String> wanted() {
    Set<String> wanted = new LinkedHashSet<>();
    DatanodeID known = id.get();
    if (known == null || known.getIpAddr() == null) {
      return wanted;
    }
    int port = known.getXferPort();
    wanted.add(names.dataNode(known.getIpAddr(), port));
    String host = known.getHostName();
    if (host != null && !host.isEmpty() && !host.equalsIgnoreCase("localhost")) {
      wanted.add(names.dataNode(host, port));
    }
    for (String address : addresses.get()) {
      wanted.add(names.dataNode(address, port));
    }
    return wanted;
  }

  @Override
  public void close() {
    stopped.countDown();
    try {
      thread.join(TimeUnit.SECONDS.toMillis(2));
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}

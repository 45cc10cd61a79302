package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.ndn.Names;
import java.io.IOException;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Publishes a DataNode's record under every name by which a client may look for it. It begins as
 * soon as the NameNode has taken the DataNode in, follows what changes, and tries again what has
 * failed.
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
  private final OwnAddresses own;
  private final Publisher publisher;
  private final Map<String, Long> published = new HashMap<>();
  private final CountDownLatch stopped = new CountDownLatch(1);
  private final Thread thread;
  private boolean failed;

  /**
   * Begins to announce.
   *
   * @param names the cluster's names
   * @param own under which clients may know the DataNode
   * @param publisher publishes the record
   */
  Announcer(Names names, OwnAddresses own, Publisher publisher) {
    this.names = names;
    this.own = own;
    this.publisher = publisher;
    thread = new Thread(this::run, "trunkline-announcer");
    thread.setDaemon(true);
    thread.start();
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
    int port = own.port();
    for (String host : own.hosts()) {
      wanted.add(names.dataNode(host, port));
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

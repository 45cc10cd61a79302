package io.trunkline.hadoop.ndn;

import io.trunkline.hadoop.conf.JsonText;
import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.conf.TrafficCategory;
import io.trunkline.hadoop.library.NativeLibrary;
import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.transport.DataNodeRecord;
import io.trunkline.hadoop.transport.Discovery;
import io.trunkline.hadoop.transport.PlaneHealth;
import io.trunkline.hadoop.util.DaemonThreads;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The forwarder inside this JVM, one for each set of settings, shared by all that use it. {@link
 * #acquire} and {@link #close} count the users; the forwarder ends a while after the last one has
 * gone, so that a client that writes one file after another keeps it.
 *
 * <p>Where traffic is marked there is one for each category in use, each with a face of its own to
 * the router: a face has one mark, and what one forwarder carries cannot leave by the face of
 * another. Not so where the face has no IP header to mark, or where others connect to this JVM's
 * forwarder, who are to find everything there.
 */
public final class NdnNode implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(NdnNode.class);
  private static final long IDLE_SECONDS = 30;

  /** How long another answer than a doubtful one is waited for: mostly there is none. */
  private static final int PAST_MS = 250;

  /** What was seen of the router that long ago is looked at again. */
  private static final long ROUTER_CHECK_NANOS = TimeUnit.MILLISECONDS.toNanos(100);

  /** Nobody goes by what was seen that long ago. */
  private static final long ROUTER_KNOWN_NANOS = TimeUnit.SECONDS.toNanos(1);

  /**
   * How the face to the router was.
   *
   * @param up whether it was up
   * @param nanos when
   */
  private record RouterSeen(boolean up, long nanos) {}

  /** Guarded by itself, as are the users of every node in it. */
  private static final Map<Key, NdnNode> NODES = new HashMap<>();

  /** What a node is shared by; the category is null where it carries all of them. */
  private record Key(Settings settings, TrafficCategory category) {
    static Key of(Settings settings, TrafficCategory category) {
      String face = settings.face();
      boolean ip = !face.isEmpty() && !face.startsWith("unix:");
      boolean apart = settings.marks() && ip && settings.listen().isEmpty();
      return new Key(settings, apart ? category : null);
    }

    // As they would be made, by method handles, at the price of some fifty classes a JVM.

    @Override
    public boolean equals(Object other) {
      return other instanceof Key key && category == key.category && settings.equals(key.settings);
    }

    @Override
    public int hashCode() {
      return 31 * settings.hashCode() + (category == null ? 0 : category.ordinal());
    }
  }

  private static final ScheduledExecutorService JANITOR =
      Executors.newSingleThreadScheduledExecutor(new DaemonThreads("trunkline-janitor"));

  private final Key key;
  private final Settings settings;
  private final Names names;
  private final long handle;
  private final Discovery discovery;
  private final PlaneHealth health = new PlaneHealth(System::nanoTime);
  private final AtomicBoolean lookingForRouter = new AtomicBoolean();
  private volatile RouterSeen routerSeen = new RouterSeen(false, 0);

  private int users;
  private long generation;

  private NdnNode(Key key) throws IOException {
    this.key = key;
    this.settings = key.settings;
    this.names = new Names(settings.root());
    NativeLibrary.load(settings.nativeLibrary());
    this.handle = Native.nodeOpen(configuration(key));
    this.discovery = new Discovery(new Question(), Preamble.VERSION, System::nanoTime);
    LOG.info(
        "named data: forwarder for {}{} started, router: {}",
        settings.root(),
        key.category == null ? "" : ", category " + key.category.text(),
        settings.face().isEmpty() ? "none, this process alone" : settings.face());
  }

  /**
   * The node for these settings, started if need be. Pair it with {@link #close}.
   *
   * @param settings the settings
   * @param category what it is to carry, null for what is in no category
   * @return the node
   * @throws IOException when it cannot be started
   */
  public static NdnNode acquire(Settings settings, TrafficCategory category) throws IOException {
    Key key = Key.of(settings, category);
    synchronized (NODES) {
      NdnNode node = NODES.get(key);
      if (node == null) {
        node = new NdnNode(key);
        NODES.put(key, node);
      }
      node.users++;
      node.generation++;
      return node;
    }
  }

  /** Asks the named network for a DataNode's record, by its address and then by its name. */
  private final class Question implements Discovery.Question {
    @Override
    public DataNodeRecord ask(InetSocketAddress dataNode) throws IOException {
      List<String> known = names.dataNode(dataNode);
      DataNodeRecord found;
      try {
        found = ask(known, false, settings.discoveryTimeoutMs());
      } catch (IOException noRecord) {
        DataNodeRecord other = askPast(dataNode);
        if (other == null) {
          throw noRecord;
        }
        return other;
      }
      if (found == null) {
        throw new IOException("no answer under " + String.join(" or ", known));
      }
      return found;
    }

    @Override
    public DataNodeRecord askPast(InetSocketAddress dataNode) throws IOException {
      int timeoutMs = Math.min(PAST_MS, settings.discoveryTimeoutMs());
      return ask(names.dataNode(dataNode), true, timeoutMs);
    }

    private DataNodeRecord ask(List<String> known, boolean rejected, int timeoutMs)
        throws IOException {
      int eachMs = Math.max(1, timeoutMs / known.size());
      for (String name : known) {
        byte[] record = Native.fetch(handle, name, true, false, rejected, eachMs);
        if (record != null) {
          return DataNodeRecord.decode(record, NdnNode::scalars);
        }
      }
      return null;
    }
  }

  /**
   * Reads the scalars of a JSON object without the library for it.
   *
   * @param json JSON in UTF-8
   * @return values by name
   * @throws IOException when that is no JSON object
   */
  public static Map<String, String> scalars(byte[] json) throws IOException {
    String[] found = Native.scalars(json);
    Map<String, String> values = new HashMap<>();
    for (int i = 0; i < found.length; i += 2) {
      values.put(found[i], found[i + 1]);
    }
    return values;
  }

  /** Gives the node back; nothing may be done with it by this user afterwards. */
  @Override
  public void close() {
    synchronized (NODES) {
      users--;
      if (users > 0) {
        return;
      }
      long idleSince = ++generation;
      JANITOR.schedule(() -> closeIfIdle(idleSince), IDLE_SECONDS, TimeUnit.SECONDS);
    }
  }

  private void closeIfIdle(long idleSince) {
    synchronized (NODES) {
      if (users == 0 && generation == idleSince) {
        NODES.remove(key);
        Native.nodeClose(handle);
        LOG.debug("forwarder under {} closed, nobody uses it", settings.root());
      }
    }
  }

  /**
   * Whether names can be asked for beyond this JVM, as far as its own face tells.
   *
   * @return false while the face to the router is down
   */
  public boolean routerUp() {
    if (settings.face().isEmpty()) {
      return true;
    }
    RouterSeen seen = routerSeen;
    long age = System.nanoTime() - seen.nanos();
    if (!seen.up() || age > ROUTER_KNOWN_NANOS) {
      lookForRouter();
    } else if (age > ROUTER_CHECK_NANOS && lookingForRouter.compareAndSet(false, true)) {
      // Somebody has asked lately: who asks now need not wait for the forwarder's thread.
      JANITOR.execute(this::lookForRouter);
    }
    return routerSeen.up();
  }

  private void lookForRouter() {
    boolean up;
    try {
      up = Native.routerUp(handle);
    } catch (IOException e) {
      up = false;
    }
    routerSeen = new RouterSeen(up, System.nanoTime());
    lookingForRouter.set(false);
  }

  /**
   * The state of all nodes of this JVM.
   *
   * @return JSON objects
   */
  public static List<String> statusOfAll() {
    List<NdnNode> nodes;
    synchronized (NODES) {
      nodes = List.copyOf(NODES.values());
    }
    List<String> all = new ArrayList<>();
    for (NdnNode node : nodes) {
      try {
        all.add(Native.nodeStatus(node.handle));
      } catch (IOException e) {
        LOG.debug("no status of the forwarder under {}", node.settings.root(), e);
      }
    }
    return all;
  }

  private static String configuration(Key key) {
    Settings settings = key.settings;
    String name = "trunkline-" + ProcessHandle.current().pid();
    JsonText json = new JsonText();
    json.text("root", settings.root());
    json.text("name", key.category == null ? name : name + "-" + key.category.text());
    if (key.category != null) {
      json.number("dscp", settings.dscp(key.category).orElseThrow());
    }
    if (!settings.face().isEmpty()) {
      json.text("face", settings.face());
    }
    if (settings.localAddress() != null) {
      json.text("local_address", settings.localAddress().getHostAddress());
    }
    json.texts("listen", settings.listen());
    json.text("verify", settings.verify());
    json.number("cs_bytes", settings.contentStoreBytes());
    json.number("pit_entries", settings.pitEntries());
    json.number("retain_bytes", settings.retainBytes());
    json.number("pull_bytes", settings.pullBytes());
    return json.end();
  }

  /**
   * Handle of the native node.
   *
   * @return the handle
   */
  public long handle() {
    return handle;
  }

  /**
   * The settings that the node was made from.
   *
   * @return the settings
   */
  public Settings settings() {
    return settings;
  }

  /**
   * The names of the cluster.
   *
   * @return the names
   */
  public Names names() {
    return names;
  }

  /**
   * Which DataNodes take data by name.
   *
   * @return the discovery
   */
  public Discovery discovery() {
    return discovery;
  }

  /**
   * Whether transfers by name have failed of late.
   *
   * @return the plane's health
   */
  public PlaneHealth health() {
    return health;
  }
}

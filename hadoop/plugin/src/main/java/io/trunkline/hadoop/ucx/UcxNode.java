package io.trunkline.hadoop.ucx;

import io.trunkline.hadoop.conf.Setting;
import io.trunkline.hadoop.conf.UcxSettings;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.openucx.jucx.UcxException;
import org.openucx.jucx.ucp.UcpContext;
import org.openucx.jucx.ucp.UcpParams;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * UCX in this JVM: I/O workers, registered memory, connections to peers, and streams over them. A
 * JVM needs one; all of it may be called by any thread.
 */
public final class UcxNode implements AutoCloseable {
  /**
   * Version of {@link Frame}s and {@link Greeting}s; a DataNode's record says which one it speaks.
   */
  public static final int PROTOCOL_VERSION = 1;

  private static final Logger LOG = LoggerFactory.getLogger(UcxNode.class);
  private static final long CLOSE_NANOS = TimeUnit.SECONDS.toNanos(2);

  /** More closed listeners than these are freed, whose last connections are long over by then. */
  private static final int MOST_REJECTING = 64;

  private static final long TRIM_NANOS = TimeUnit.SECONDS.toNanos(1);

  /**
   * What UCX is told unless its environment says else: shared memory is kept though peers may fail,
   * and with it that one process copies from the other's memory (UCX calls this MEMORY_INVALIDATE,
   * since what it cannot do is to forbid such a copy later: see {@link SendSide}); one lane, since
   * its ways of splitting messages put half of them on TCP beside shared memory; no PUT over TCP,
   * during which UCX 1.13 ends the process by an assertion when the connection breaks; and memory
   * of {@link Slab}s in huge pages, not in what it would share with peers, who would have to map it
   * for each message.
   */
  private static final Map<String, String> DEFAULTS =
      Map.of(
          "MM_ERROR_HANDLING", "y",
          "CMA_MEMORY_INVALIDATE", "y",
          "MAX_EAGER_LANES", "1",
          "MAX_RNDV_LANES", "1",
          "TCP_PUT_ENABLE", "n",
          "ALLOC_PRIO", "thp,mmap,heap",
          "LOG_LEVEL", "error");

  private final UcxSettings settings;
  private final Counters counters = new Counters();
  private final UcpContext context;
  private final BufferPool pool;
  private final Ticker ticker;

  /** As many as the settings say, or less where UCX gives no more. Under the lock of peers. */
  private int mostWorkers;

  /** Those of workers that run: one at first, as most clients never need more. */
  private final List<Connections> running = new CopyOnWriteArrayList<>();

  /**
   * Guarded by itself. Workers take this lock, so nobody may wait for a worker while holding it.
   */
  private final Map<InetSocketAddress, Connection[]> peers = new HashMap<>();

  /** Held while a listener is made, which waits for a worker; no worker takes it. */
  private final Object listening = new Object();

  private final Set<UcxListener> listeners = ConcurrentHashMap.newKeySet();

  /** Closed ones that UCX still has, the oldest first. Guarded by itself. */
  private final ArrayDeque<UcxListener> rejecting = new ArrayDeque<>();

  private final Thread atExit = new Thread(this::closeAtExit, "trunkline-ucx-exit");
  private long trimmedNanos = System.nanoTime();
  private boolean closed;

  private UcxNode(UcxSettings settings, UcpContext context) {
    this.settings = settings;
    this.context = context;
    pool =
        new BufferPool(
            context,
            settings.get(Setting.UCX_POOL_BYTES),
            settings.getInt(Setting.UCX_RENDEZVOUS_BYTES),
            settings.getInt(Setting.UCX_MESSAGE_BYTES),
            counters);
    ticker = new Ticker(settings.get(Setting.UCX_WAKE_CHECK_MS));
    mostWorkers = settings.getInt(Setting.UCX_WORKERS);
    startWorker();
    ticker.start(running, this::maintain);
    Runtime.getRuntime().addShutdownHook(atExit);
  }

  /**
   * Starts UCX.
   *
   * @throws UcxUnavailableException when it cannot be had here; says why and what helps
   */
  public static UcxNode open(UcxSettings settings) throws IOException {
    UcxLibrary.Status library = UcxLibrary.load(settings);
    UcpContext context = null;
    try {
      context = new UcpContext(params(settings));
      UcxNode node = new UcxNode(settings, context);
      LOG.info(
          "UCX {} started with at most {} workers and {} bytes of registered memory",
          library.version(),
          settings.get(Setting.UCX_WORKERS),
          settings.get(Setting.UCX_POOL_BYTES));
      return node;
    } catch (UcxException e) {
      if (context != null) {
        context.close();
      }
      throw new UcxUnavailableException(
          "UCX does not start: "
              + e.getMessage()
              + "; look at UCX_TLS and UCX_NET_DEVICES in the environment and at "
              + Setting.UCX_TLS.key()
              + " = "
              + settings.tls(),
          e);
    }
  }

  private static UcpParams params(UcxSettings settings) {
    UcpParams params =
        new UcpParams().requestAmFeature().requestWakeupFeature().setMtWorkersShared(true);
    for (Map.Entry<String, String> each : DEFAULTS.entrySet()) {
      configure(params, each.getKey(), each.getValue());
    }
    if (!settings.tls().isEmpty()) {
      configure(params, "TLS", settings.tls());
    }
    return params;
  }

  private static void configure(UcpParams params, String key, String value) {
    if (System.getenv("UCX_" + key) == null) {
      // A transport's own table has names without the transport's: 1.13 looks there by those, newer
      // ones by the whole name.
      params.setConfig(key, value);
      String own = key.replaceFirst("^(CMA|TCP)_", "");
      if (!own.equals(key)) {
        params.setConfig(own, value);
      }
    }
  }

  UcxSettings settings() {
    return settings;
  }

  BufferPool pool() {
    return pool;
  }

  Counters counters() {
    return counters;
  }

  boolean takeStream() {
    int most = settings.getInt(Setting.UCX_STREAMS_MAX);
    return counters.streamsOpen.getAndUpdate(open -> open < most ? open + 1 : open) < most;
  }

  /** Whether peers have made as many connections as there may be streams. */
  boolean full() {
    return counters.endpointsOpen.get() >= settings.getInt(Setting.UCX_STREAMS_MAX);
  }

  /** What it holds and has done. */
  public UcxMetrics metrics() {
    return counters.snapshot(pool);
  }

  /** Deregisters all memory that nobody uses now. */
  public void trimPool() {
    pool.trim(0);
  }

  private void maintain() {
    long now = System.nanoTime();
    if (now - trimmedNanos >= TRIM_NANOS) {
      trimmedNanos = now;
      pool.trim(TimeUnit.MILLISECONDS.toNanos(settings.get(Setting.UCX_IDLE_MS)));
    }
  }

  static SocketTimeoutException timeout(String what) {
    if (Thread.currentThread().isInterrupted()) {
      return new SocketTimeoutException("interrupted: " + what);
    }
    return new SocketTimeoutException(what);
  }

  static long deadline(long timeoutMs) {
    return timeoutMs == 0
        ? IoWorker.NO_DEADLINE
        : System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(timeoutMs);
  }

  // ---- listening

  /**
   * Listens for peers.
   *
   * @param address where; port 0 picks one
   * @param backlog most streams that wait to be accepted
   * @throws java.net.BindException when the address cannot be had
   */
  public UcxListener listen(InetSocketAddress address, int backlog) throws IOException {
    synchronized (listening) {
      synchronized (peers) {
        checkOpen();
        while (running.size() < mostWorkers && startAnother()) {}
      }
      UcxListener listener = UcxListener.open(this, running.get(0), address, backlog);
      listeners.add(listener);
      return listener;
    }
  }

  private void checkOpen() throws IOException {
    synchronized (peers) {
      if (closed) {
        throw new IOException("UCX node is closed");
      }
    }
  }

  void closed(UcxListener listener) {
    UcxListener oldest = null;
    synchronized (rejecting) {
      rejecting.add(listener);
      if (rejecting.size() > MOST_REJECTING) {
        oldest = rejecting.poll();
      }
    }
    listeners.remove(listener);
    if (oldest != null) {
      oldest.destroyLater();
    }
  }

  /** Workers, all of which run where somebody listens, take connections one after the other. */
  Connections forAccepting(int number) {
    return running.get(number % running.size());
  }

  /** Called with the lock of {@link #peers}. Where none more can be had, those that run do. */
  private boolean startAnother() {
    try {
      startWorker();
      return true;
    } catch (UcxException | OutOfMemoryError e) {
      mostWorkers = running.size();
      LOG.warn(
          "UCX: cannot start another worker, {} share the work: {}", mostWorkers, e.toString());
      return false;
    }
  }

  private void startWorker() {
    IoWorker worker = new IoWorker(running.size(), context, settings, ticker, counters);
    boolean started = false;
    try {
      Connections made = new Connections(this, worker);
      made.start();
      running.add(made);
      started = true;
    } finally {
      if (!started) {
        worker.ucp().close();
      }
    }
  }

  // ---- connecting

  /**
   * Opens a stream to a peer's listener. The connection under it is made when there is none yet.
   *
   * @param peer a resolved address
   * @param timeoutMs how long that may take; 0: as long as trunkline.ucx.connect.ms says
   * @throws SocketTimeoutException when the peer does not answer in time
   * @throws ConnectException when nobody listens there, or the stream is refused
   */
  public UcxChannel connect(InetSocketAddress peer, int timeoutMs) throws IOException {
    if (peer.isUnresolved()) {
      throw new ConnectException("unresolved address " + peer);
    }
    long limitMs = timeoutMs > 0 ? timeoutMs : settings.get(Setting.UCX_CONNECT_MS);
    long deadline = deadline(limitMs);
    for (int attempt = 0; ; attempt++) {
      if (counters.streamsOpen.get() >= settings.getInt(Setting.UCX_STREAMS_MAX)) {
        throw new ConnectException(
            "as many streams as " + Setting.UCX_STREAMS_MAX.key() + " allows are open");
      }
      Connection connection = connection(peer);
      boolean reused = connection.state() == Connection.State.OPEN;
      try {
        connection.awaitOpen(deadline);
        StreamEnd stream = open(connection, deadline);
        if (stream != null) {
          counters.streamsOpened.increment();
          return UcxChannel.of(stream);
        }
      } catch (StreamRefusedException | SocketTimeoutException e) {
        throw e;
      } catch (IOException e) {
        if (!reused || attempt > 0) {
          throw e;
        }
        LOG.debug("connection to {} was dead: {}", peer, e.getMessage());
      } finally {
        connection.connections().opening(-1);
      }
    }
  }

  /**
   * The connection of the worker that has the fewest streams, since those share its leader: a new
   * one where it has none yet. Counts as a stream that is being opened from now on.
   */
  private Connection connection(InetSocketAddress peer) throws IOException {
    Connection made;
    synchronized (peers) {
      if (closed) {
        throw new IOException("UCX node is closed");
      }
      Connection[] all =
          peers.computeIfAbsent(peer, key -> new Connection[settings.getInt(Setting.UCX_WORKERS)]);
      int best = workerFor(all);
      running.get(best).opening(1);
      if (usable(all[best])) {
        return all[best];
      }
      made = Connection.connector(running.get(best), peer);
      all[best] = made;
    }
    counters.endpointsConnected.increment();
    made.connections().worker().execute(made::connect);
    return made;
  }

  private int workerFor(Connection[] all) {
    int best = 0;
    for (int i = 1; i < running.size(); i++) {
      int more = running.get(i).streams() - running.get(best).streams();
      if (more < 0 || (more == 0 && usable(all[i]) && !usable(all[best]))) {
        best = i;
      }
    }
    if (running.get(best).streams() > 0 && running.size() < mostWorkers && startAnother()) {
      best = running.size() - 1;
    }
    return best;
  }

  private static boolean usable(Connection connection) {
    return connection != null
        && connection.state() != Connection.State.GONE
        && connection.state() != Connection.State.LEAVING;
  }

  /** Opens a stream over a connection; null when the connection has just gone. */
  private StreamEnd open(Connection connection, long deadline) throws IOException {
    AtomicReference<StreamEnd> made = new AtomicReference<>();
    Waiters asked = new Waiters();
    IoWorker worker = connection.connections().worker();
    AtomicBoolean gone = new AtomicBoolean();
    AtomicBoolean givenUp = new AtomicBoolean();
    worker.execute(
        () -> {
          StreamEnd stream = connection.open();
          gone.set(stream == null);
          made.set(stream);
          if (stream != null) {
            stream.onDecision(asked::tell);
            if (givenUp.get()) {
              stream.abandon();
            }
          }
          asked.tell();
        });
    boolean decided =
        asked.await(
            worker,
            () -> {
              StreamEnd stream = made.get();
              return gone.get() || (stream != null && stream.state() != StreamEnd.State.OPENING);
            },
            deadline);
    givenUp.set(!decided);
    StreamEnd stream = made.get();
    if (!decided) {
      if (stream != null) {
        stream.abandon();
      }
      throw timeout("UCX peer " + connection.remote() + " does not accept the stream");
    }
    if (stream == null) {
      return null;
    }
    IOException failure = stream.failure();
    if (failure instanceof StreamRefusedException) {
      throw new StreamRefusedException(connection.remote() + ": " + failure.getMessage());
    }
    if (failure != null) {
      throw new IOException(failure.getMessage(), failure);
    }
    return stream;
  }

  /** A connection is gone. */
  void removed(Connection connection) {
    synchronized (peers) {
      Connection[] all = peers.get(connection.remote());
      if (all == null) {
        return;
      }
      boolean empty = true;
      for (int i = 0; i < all.length; i++) {
        if (all[i] == connection) {
          all[i] = null;
        }
        empty &= all[i] == null;
      }
      if (empty) {
        peers.remove(connection.remote());
      }
    }
  }

  // ---- the end

  private void endLast(Connections connections) {
    connections.endAll();
    synchronized (rejecting) {
      for (UcxListener listener : rejecting) {
        if (listener.isOn(connections)) {
          listener.destroy();
        }
      }
    }
  }

  private void closeAtExit() {
    try {
      close();
    } catch (RuntimeException e) {
      LOG.debug("closing at exit", e);
    }
  }

  /**
   * Ends it: streams fail, connections go, threads end, memory is deregistered. Calls of other
   * threads that wait end with an IOException.
   */
  @Override
  public void close() {
    synchronized (peers) {
      if (closed) {
        return;
      }
      closed = true;
    }
    if (Thread.currentThread() != atExit) {
      try {
        Runtime.getRuntime().removeShutdownHook(atExit);
      } catch (IllegalStateException e) {
        LOG.debug("closed while the JVM shuts down");
      }
    }
    synchronized (listening) {
      for (UcxListener listener : new ArrayList<>(listeners)) {
        listener.close();
      }
    }
    for (Connections each : running) {
      each.worker().execute(each::endAll);
    }
    long deadline = System.nanoTime() + CLOSE_NANOS;
    for (Connections each : running) {
      new Waiters().await(each.worker(), each::idle, deadline);
    }
    ticker.close();
    for (Connections each : running) {
      each.worker().close(() -> endLast(each));
    }
    pool.close();
    context.close();
  }
}

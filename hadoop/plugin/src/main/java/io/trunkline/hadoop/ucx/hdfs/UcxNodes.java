package io.trunkline.hadoop.ucx.hdfs;

import io.trunkline.hadoop.conf.UcxSettings;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.ucx.UcxLibrary;
import io.trunkline.hadoop.ucx.UcxMetrics;
import io.trunkline.hadoop.ucx.UcxNode;
import io.trunkline.hadoop.ucx.UcxUnavailableException;
import io.trunkline.hadoop.util.DaemonThreads;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The UCX nodes of this JVM, one for each set of settings: its workers, its endpoints and its
 * registered memory are shared by all clients and DataNodes in it. A node that nobody uses, and
 * over which no stream is open, ends after a while.
 */
final class UcxNodes {
  private static final Logger LOG = LoggerFactory.getLogger(UcxNodes.class);
  private static final long CHECK_SECONDS = 30;
  private static final long RETRY_NANOS = TimeUnit.SECONDS.toNanos(CHECK_SECONDS);

  /** Looking for the library costs time, and what is not there at first will not be there later. */
  private static final Map<UcxSettings, String> UNAVAILABLE = new ConcurrentHashMap<>();

  /** Guarded by itself, as is all in it. */
  private static final Map<UcxSettings, Shared> NODES = new HashMap<>();

  private static final ScheduledExecutorService JANITOR =
      Executors.newSingleThreadScheduledExecutor(new DaemonThreads("trunkline-ucx-janitor"));

  /** Why nodes did not start of late; guarded by {@link #NODES}. */
  private static final Map<UcxSettings, Failure> FAILED = new HashMap<>();

  private record Failure(UcxUnavailableException cause, long nanos) {}

  /** What nodes that have ended had counted. */
  private static final Map<String, Long> ENDED = new LinkedHashMap<>();

  static {
    TransferStats.get().numbers(UcxNodes::numbers);
    JANITOR.scheduleWithFixedDelay(
        UcxNodes::closeIdle, CHECK_SECONDS, CHECK_SECONDS, TimeUnit.SECONDS);
  }

  private UcxNodes() {}

  private static final class Shared {
    private final UcxNode node;
    private int users;
    private boolean usedSinceCheck;

    Shared(UcxNode node) {
      this.node = node;
    }
  }

  /** A node, held until it is given back. */
  static final class Use implements AutoCloseable {
    private final Shared shared;
    private boolean closed;

    private Use(Shared shared) {
      this.shared = shared;
    }

    UcxNode node() {
      return shared.node;
    }

    /** Gives it back; streams that were opened over it go on. */
    @Override
    public void close() {
      synchronized (NODES) {
        if (!closed) {
          closed = true;
          shared.users--;
        }
      }
    }
  }

  /**
   * Why UCX cannot be used in this JVM.
   *
   * @return the cause and the way out, empty when it can be used
   */
  static String unavailable(UcxSettings settings) {
    return UNAVAILABLE.computeIfAbsent(
        settings,
        s -> {
          UcxLibrary.Status status = UcxLibrary.probe(s);
          LOG.info(
              "UCX: {}",
              status.available() ? status.version() + " at " + status.path() : status.reason());
          return status.available() ? "" : status.reason();
        });
  }

  /**
   * The node for these settings, started if need be.
   *
   * @throws IOException when UCX is not there, or does not start
   */
  static Use acquire(UcxSettings settings) throws IOException {
    synchronized (NODES) {
      Shared shared = NODES.get(settings);
      if (shared == null) {
        shared = new Shared(open(settings));
        NODES.put(settings, shared);
      }
      shared.users++;
      shared.usedSinceCheck = true;
      return new Use(shared);
    }
  }

  /** Starting UCX takes long: where it has just failed, not every operation tries it again. */
  private static UcxNode open(UcxSettings settings) throws IOException {
    Failure failure = FAILED.get(settings);
    if (failure != null && System.nanoTime() - failure.nanos() < RETRY_NANOS) {
      throw new UcxUnavailableException(failure.cause().getMessage(), failure.cause());
    }
    try {
      UcxNode node = UcxNode.open(settings);
      FAILED.remove(settings);
      return node;
    } catch (UcxUnavailableException e) {
      FAILED.put(settings, new Failure(e, System.nanoTime()));
      throw e;
    }
  }

  private static void closeIdle() {
    List<UcxNode> idle = new ArrayList<>();
    synchronized (NODES) {
      NODES
          .values()
          .removeIf(
              shared -> {
                boolean used =
                    shared.usedSinceCheck
                        || shared.users > 0
                        || shared.node.metrics().streamsOpen() > 0;
                shared.usedSinceCheck = false;
                if (!used) {
                  addAll(ENDED, numbers(shared.node.metrics()));
                  idle.add(shared.node);
                }
                return !used;
              });
    }
    for (UcxNode node : idle) {
      try {
        node.close();
        LOG.debug("UCX node closed, nobody uses it");
      } catch (RuntimeException e) {
        // What is thrown here would keep the janitor from ever coming again.
        LOG.warn("UCX did not shut down cleanly: {}", e.toString());
      }
    }
  }

  /** For the stats file: sums over all nodes. */
  private static Map<String, Long> numbers() {
    synchronized (NODES) {
      Map<String, Long> sum = new LinkedHashMap<>(ENDED);
      for (Shared shared : NODES.values()) {
        UcxMetrics metrics = shared.node.metrics();
        addAll(sum, numbers(metrics));
        add(sum, "ucx_registered_bytes", metrics.registeredBytes());
        add(sum, "ucx_pooled_bytes_in_use", metrics.pooledBytesInUse());
        add(sum, "ucx_unpooled_bytes", metrics.unpooledBytes());
        add(sum, "ucx_endpoints_open", metrics.endpointsOpen());
        add(sum, "ucx_streams_open", metrics.streamsOpen());
      }
      return sum;
    }
  }

  private static void addAll(Map<String, Long> sum, Map<String, Long> numbers) {
    for (Map.Entry<String, Long> number : numbers.entrySet()) {
      add(sum, number.getKey(), number.getValue());
    }
  }

  private static void add(Map<String, Long> sum, String name, long value) {
    sum.put(name, sum.getOrDefault(name, 0L) + value);
  }

  /** What only ever grows. */
  private static Map<String, Long> numbers(UcxMetrics metrics) {
    Map<String, Long> numbers = new LinkedHashMap<>();
    numbers.put("ucx_connects", metrics.endpointsConnected());
    numbers.put("ucx_endpoints_accepted", metrics.endpointsAccepted());
    numbers.put("ucx_endpoints_failed", metrics.endpointsFailed());
    numbers.put("ucx_streams", metrics.streamsOpened());
    numbers.put("ucx_streams_accepted", metrics.streamsAccepted());
    numbers.put("ucx_streams_refused", metrics.streamsRefused());
    numbers.put("ucx_bytes_sent", metrics.bytesSent());
    numbers.put("ucx_bytes_received", metrics.bytesReceived());
    numbers.put("ucx_eager_sent", metrics.eagerSent());
    numbers.put("ucx_rendezvous_sent", metrics.rendezvousSent());
    numbers.put("ucx_pool_waits", metrics.poolWaits());
    numbers.put("ucx_frames_refused", metrics.framesRefused());
    numbers.put("ucx_wakeups", metrics.wakeups());
    return numbers;
  }
}

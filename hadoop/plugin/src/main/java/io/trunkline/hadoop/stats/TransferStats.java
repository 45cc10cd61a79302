package io.trunkline.hadoop.stats;

import io.trunkline.hadoop.conf.JsonText;
import io.trunkline.hadoop.conf.TransportNames;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The counters of this JVM: what went by which transport, what fell back and why. */
public final class TransferStats {
  /** What is counted. */
  public enum Counter {
    /** Block writes of which this JVM's client publishes the packets. */
    NAMED_WRITES,
    /** Block writes that this JVM's client sends as stock bytes. */
    PLAIN_WRITES,
    /** Block writes that this JVM's DataNodes pull by name. */
    NAMED_RECEIVES,
    /** Block writes that this JVM's DataNodes pass on without their bodies. */
    NAMED_RELAYS,
    /** Replicas opened for reading by name. */
    NAMED_READS,
    /** Segments published by writers. */
    SEGMENTS_PUBLISHED,
    /** Checksums and data of the published segments, in bytes. */
    BYTES_PUBLISHED,
    /** Segments pulled by DataNodes. */
    SEGMENTS_PULLED,
    /** Checksums and data of the segments pulled by DataNodes, in bytes. */
    BYTES_PULLED,
    /** Segments pulled by readers. */
    SEGMENTS_READ,
    /** Block data that readers got by name, in bytes. */
    BYTES_READ,
    /** Packet bodies that went down a control connection of a named write. */
    INLINE_BODIES,
    /** Packet bodies that were published and then sent down a control connection, as asked. */
    BODIES_AGAIN,
    /** Checksums and data of all those, in bytes. */
    BYTES_INLINE,
    /** Pulls that were opened again after a failure. */
    PULL_RETRIES,
    /** Block writes for which this JVM's DataNodes asked for bodies on the control connection. */
    INLINE_ASKED,
    /** Pulls that did not get their segment in time. */
    PULL_TIMEOUTS,
    /** Control connections of named writes that were made secure, at either end. */
    SECURED_CONNECTIONS,
    /** Connections that this JVM's DataNodes closed as they could not be made secure. */
    HANDSHAKES_REFUSED,
    /** Requests for a block's key whose token this JVM's DataNodes did not accept. */
    READERS_REFUSED,
    /** Replicas that were read on under another key, as DataNodes did not know theirs any more. */
    KEYS_RENEWED,
    /** Data connections that this JVM opened by UCX to write a block. */
    UCX_WRITES,
    /** Data connections that this JVM opened by UCX to read blocks. */
    UCX_READS,
    /** Block writes that this JVM's DataNodes took by UCX. */
    UCX_RECEIVES,
    /** Data connections by UCX that were lost, or on which nothing came in time. */
    UCX_LOST,
    /** Connections of pipelines that this JVM's DataNodes were to report to the controller. */
    MIRROR_REPORTED,
    /** Those of them that were not, as too many were waiting for it. */
    MIRROR_DROPPED,
    /** Pipelines that were armed once this JVM's DataNode had reported their last connection. */
    MIRROR_ARMED,
    /** Pipelines that were not armed in time once all of their connections were known. */
    MIRROR_LATE,
    /** Pipelines that were given up, as other DataNodes did not report their connections. */
    MIRROR_INCOMPLETE,
    /** Block writes that the controller does not mirror, as it says to this JVM's DataNodes. */
    MIRROR_REFUSED,
    /** Reports that the controller did not get, or did not answer as it should. */
    MIRROR_UNREACHABLE,
    /** Connections that were to be marked and that the system let be opened without a mark only. */
    MARKS_REFUSED
  }

  private static final Logger LOG = LoggerFactory.getLogger(TransferStats.class);
  private static final TransferStats OF_THIS_JVM = new TransferStats();
  private static final int MAX_LOGGED = 10_000;

  private final LongAdder[] counters = new LongAdder[Counter.values().length];
  private final Map<String, LongAdder> opened = new ConcurrentSkipListMap<>();
  private final Map<String, LongAdder> accepted = new ConcurrentSkipListMap<>();

  /** By transport, then by reason. */
  private final Map<String, Map<Fallback, LongAdder>> fallbacks = new ConcurrentSkipListMap<>();

  private final Map<String, Supplier<List<String>>> sections = new ConcurrentSkipListMap<>();
  private final List<Supplier<Map<String, Long>>> numbers = new CopyOnWriteArrayList<>();
  private final Set<String> logged = ConcurrentHashMap.newKeySet();

  private TransferStats() {
    for (int i = 0; i < counters.length; i++) {
      counters[i] = new LongAdder();
    }
  }

  /**
   * The counters of this JVM.
   *
   * @return them
   */
  public static TransferStats get() {
    return OF_THIS_JVM;
  }

  /**
   * Counts one.
   *
   * @param counter of what
   */
  public void add(Counter counter) {
    counters[counter.ordinal()].increment();
  }

  /**
   * Counts more than one.
   *
   * @param counter of what
   * @param amount how many
   */
  public void add(Counter counter, long amount) {
    counters[counter.ordinal()].add(amount);
  }

  /**
   * Reads a counter.
   *
   * @param counter which
   * @return its value
   */
  public long value(Counter counter) {
    return counters[counter.ordinal()].sum();
  }

  /**
   * A data connection was opened.
   *
   * @param transport by which transport
   */
  public void opened(String transport) {
    opened.computeIfAbsent(transport, k -> new LongAdder()).increment();
  }

  /**
   * A data connection was accepted and is served.
   *
   * @param transport by which transport
   */
  public void accepted(String transport) {
    accepted.computeIfAbsent(transport, k -> new LongAdder()).increment();
  }

  /**
   * How many data connections were opened.
   *
   * @param transport by which transport
   * @return how many
   */
  public long connectionsOpened(String transport) {
    return sum(opened.get(transport));
  }

  /**
   * How many data connections were accepted.
   *
   * @param transport by which transport
   * @return how many
   */
  public long connectionsAccepted(String transport) {
    return sum(accepted.get(transport));
  }

  /**
   * An operation does not go by a transport that was to be tried: counted each time, logged once
   * for each transport, reason and peer, or once at all where the reason is this process's own.
   *
   * @param transport the transport that does not serve it
   * @param instead the transport that it goes by
   * @param reason why
   * @param peer the DataNode, or the block, that it concerns
   * @param detail what is known of the cause, for the log line
   */
  public void fallback(
      String transport, String instead, Fallback reason, String peer, String detail) {
    fallbacks
        .computeIfAbsent(transport, k -> new ConcurrentSkipListMap<>())
        .computeIfAbsent(reason, k -> new LongAdder())
        .increment();
    StatsFile.changed();
    if (logged.size() > MAX_LOGGED) {
      logged.clear();
    }
    String concerned = reason.ofProcess() ? "all data" : peer;
    if (logged.add(transport + ' ' + reason.key() + ' ' + concerned)) {
      LOG.info(
          "{}: by {} instead of {}, {}{}",
          concerned,
          instead.equals(TransportNames.TCP) ? "stock TCP" : instead,
          transport,
          reason.text(),
          detail.isEmpty() ? "" : ": " + detail);
    }
  }

  /**
   * How often a reason has kept an operation from a transport.
   *
   * @param reason the reason
   * @return how often, over all transports
   */
  public long fallbacks(Fallback reason) {
    long sum = 0;
    for (String transport : fallbacks.keySet()) {
      sum += fallbacks(transport, reason);
    }
    return sum;
  }

  /**
   * How often a reason has kept an operation from one transport.
   *
   * @param transport the transport
   * @param reason the reason
   * @return how often
   */
  public long fallbacks(String transport, Fallback reason) {
    Map<Fallback, LongAdder> reasons = fallbacks.get(transport);
    return reasons == null ? 0 : sum(reasons.get(reason));
  }

  private static long sum(LongAdder counter) {
    return counter == null ? 0 : counter.sum();
  }

  /**
   * Adds a list to what {@link #json} gives out.
   *
   * @param name its name there
   * @param objects gives JSON objects; called each time
   */
  public void section(String name, Supplier<List<String>> objects) {
    sections.put(name, objects);
  }

  /**
   * Adds numbers to what {@link #json} gives out.
   *
   * @param named gives numbers by name; called each time
   */
  public void numbers(Supplier<Map<String, Long>> named) {
    numbers.add(named);
  }

  /**
   * All counters, and the state of what the transports run in this JVM.
   *
   * @return a JSON object
   */
  public String json() {
    JsonText json = new JsonText();
    json.number("pid", ProcessHandle.current().pid());
    for (Counter counter : Counter.values()) {
      json.number(counter.name().toLowerCase(Locale.ROOT), value(counter));
    }
    for (Supplier<Map<String, Long>> named : numbers) {
      for (Map.Entry<String, Long> number : named.get().entrySet()) {
        json.number(number.getKey(), number.getValue());
      }
    }
    json.open("connections");
    for (Map<String, LongAdder> side : List.of(opened, accepted)) {
      json.open(side == opened ? "opened" : "accepted");
      for (Map.Entry<String, LongAdder> transport : side.entrySet()) {
        json.number(transport.getKey(), transport.getValue().sum());
      }
      json.close();
    }
    json.close();
    json.open("fallbacks");
    for (Fallback reason : Fallback.values()) {
      if (fallbacks(reason) > 0) {
        json.number(reason.key(), fallbacks(reason));
      }
    }
    json.close();
    json.open("fallbacks_by_transport");
    for (Map.Entry<String, Map<Fallback, LongAdder>> transport : fallbacks.entrySet()) {
      json.open(transport.getKey());
      for (Map.Entry<Fallback, LongAdder> reason : transport.getValue().entrySet()) {
        json.number(reason.getKey().key(), reason.getValue().sum());
      }
      json.close();
    }
    json.close();
    for (Map.Entry<String, Supplier<List<String>>> section : sections.entrySet()) {
      json.objects(section.getKey(), section.getValue().get());
    }
    return json.end();
  }
}

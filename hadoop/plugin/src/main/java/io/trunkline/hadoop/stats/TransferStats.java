package io.trunkline.hadoop.stats;

import io.trunkline.hadoop.conf.Json;
import io.trunkline.hadoop.ndn.NdnNode;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.LongAdder;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The counters of this JVM: what went by name, what went by TCP and why. */
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
    /** Checksums and data of those, in bytes. */
    BYTES_INLINE,
    /** Pulls that were opened again after a failure. */
    PULL_RETRIES,
    /** Pulls that did not get their segment in time. */
    PULL_TIMEOUTS
  }

  private static final Logger LOG = LoggerFactory.getLogger(TransferStats.class);
  private static final TransferStats OF_THIS_JVM = new TransferStats();
  private static final int MAX_SAID = 10_000;

  private final LongAdder[] counters = new LongAdder[Counter.values().length];
  private final Map<String, LongAdder> fallbacks = new ConcurrentSkipListMap<>();
  private final Set<String> said = ConcurrentHashMap.newKeySet();

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
   * An operation goes by stock TCP: counted each time, logged once for each reason and peer.
   *
   * @param reason why
   * @param peer the DataNode, or the block, that it concerns
   * @param detail what is known of the cause, for the log line
   */
  public void fallback(Fallback reason, String peer, String detail) {
    fallbacks.computeIfAbsent(reason.key(), k -> new LongAdder()).increment();
    if (said.size() > MAX_SAID) {
      said.clear();
    }
    if (said.add(reason.key() + ' ' + peer)) {
      LOG.info(
          "{}: by stock TCP, {}{}", peer, reason.text(), detail.isEmpty() ? "" : ": " + detail);
    }
  }

  /**
   * How often a reason has sent an operation by TCP.
   *
   * @param reason the reason
   * @return how often
   */
  public long fallbacks(Fallback reason) {
    LongAdder count = fallbacks.get(reason.key());
    return count == null ? 0 : count.sum();
  }

  /**
   * All counters, and the state of the JVM's forwarders.
   *
   * @return a JSON object
   */
  public String json() {
    return Json.object(
        json -> {
          json.writeNumberField("pid", ProcessHandle.current().pid());
          for (Counter counter : Counter.values()) {
            json.writeNumberField(counter.name().toLowerCase(Locale.ROOT), value(counter));
          }
          json.writeObjectFieldStart("fallbacks");
          for (Map.Entry<String, LongAdder> reason : fallbacks.entrySet()) {
            json.writeNumberField(reason.getKey(), reason.getValue().sum());
          }
          json.writeEndObject();
          json.writeArrayFieldStart("nodes");
          for (String status : NdnNode.statusOfAll()) {
            json.writeRawValue(status);
          }
          json.writeEndArray();
        });
  }
}

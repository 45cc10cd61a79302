package io.trunkline.hadoop.ndn.write;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.conf.TrafficCategory;
import io.trunkline.hadoop.conf.TransportNames;
import io.trunkline.hadoop.ndn.Names;
import io.trunkline.hadoop.ndn.NativeSecurity;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.ndn.wire.SegmentHeader;
import io.trunkline.hadoop.ndn.wire.WriteKey;
import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.util.Nonces;
import io.trunkline.hadoop.wire.WriteOp;
import java.io.IOException;
import org.apache.hadoop.util.DataChecksum;

/** Decides how writes to one DataNode's plug-in travel. */
public final class WritePlanner implements Planner {
  private static final Plan PLAIN = new Plan.Plain();

  private final Settings settings;
  private final TrafficCategory category;
  private final String peer;
  private final PacketsInFlight inFlight;

  /** Whether the connection has a secure channel. */
  private final boolean secured;

  private final TransferStats stats = TransferStats.get();

  /**
   * A planner.
   *
   * @param settings the settings
   * @param category what the writes are
   * @param peer names the DataNode in logs
   * @param inFlight what HDFS leaves unacknowledged
   */
  public WritePlanner(
      Settings settings, TrafficCategory category, String peer, PacketsInFlight inFlight) {
    this(settings, category, peer, inFlight, false);
  }

  /**
   * A planner for a connection that may have a secure channel. Stock code's header says by being
   * there that stock code does not protect what it writes: had it made a handshake of its own, the
   * tap would see that in its place. So what is not published stays on the secure channel, whether
   * stock code was told of it or the cluster has block tokens alone.
   *
   * @param settings the settings
   * @param category what the writes are
   * @param peer names the DataNode in logs
   * @param inFlight what HDFS leaves unacknowledged
   * @param secured whether the connection has a secure channel
   */
  public WritePlanner(
      Settings settings,
      TrafficCategory category,
      String peer,
      PacketsInFlight inFlight,
      boolean secured) {
    this.secured = secured;
    this.settings = settings;
    this.category = category;
    this.peer = peer;
    this.inFlight = inFlight;
  }

  @Override
  public Plan plan(WriteOp op) {
    if (!op.mirrored() && !secured) {
      return PLAIN;
    }
    if (secured != (op.token() != null)) {
      return plain(op, Fallback.BLOCK_TOKEN, op.id());
    }
    if (!op.firstHop()) {
      Inflow inflow = Inflow.upstreamOf(op);
      return inflow == null ? plain(op, Fallback.UPSTREAM_PLAIN, op.id()) : new Plan.Relay(inflow);
    }
    if (op.pipelineSize() == 1 || !op.mirrored()) {
      // Nobody shares what would be published: TCP has less to do.
      stats.add(Counter.PLAIN_WRITES);
      return plain(op);
    }
    int chunk = op.checksum().getBytesPerChecksum();
    DataChecksum.Type type = op.checksum().getChecksumType();
    int segmentBytes = settings.segmentBytes() / chunk * chunk;
    if (segmentBytes < SegmentHeader.MIN_DATA_BYTES
        || !new SegmentHeader(type.id, chunk, segmentBytes, 0).fits(segmentBytes)
        || type != DataChecksum.Type.CRC32 && type != DataChecksum.Type.CRC32C) {
      return plain(op, Fallback.CHECKSUM_KIND, op.id() + " has " + op.checksum());
    }
    return produce(op, segmentBytes);
  }

  private Plan produce(WriteOp op, int segmentBytes) {
    NdnNode node;
    try {
      node = NdnNode.acquire(settings, category);
    } catch (IOException e) {
      return plain(op, Fallback.NODE_DOWN, e.getMessage());
    }
    WriteKey key;
    try {
      // A new one for each write: segment numbers begin anew, and none is sealed twice.
      key = secured ? new WriteKey(NativeSecurity.keyDraw()) : null;
    } catch (IOException e) {
      node.close();
      return plain(op, Fallback.NODE_DOWN, e.getMessage());
    }
    Preamble preamble = preamble(op, segmentBytes, key);
    // Of small packets each is a segment, however long those may be.
    int keptBytes = (int) Math.min(segmentBytes, inFlight.dataBytes(op.checksum()));
    int retain =
        Math.max(settings.retainSegments(keptBytes), inFlight.segments(op.checksum(), keptBytes));
    stats.add(Counter.NAMED_WRITES);
    NativePublisher publisher =
        new NativePublisher(node, preamble, op.id(), peer, retain, keptBytes);
    return new Plan.Produce(preamble, publisher, settings.inlineBytes());
  }

  private Preamble preamble(WriteOp op, int segmentBytes, WriteKey key) {
    String name = new Names(settings.root()).version(op.pool(), op.block(), op.genstamp());
    return new Preamble(name, Nonces.next(), segmentBytes, key);
  }

  private Plan plain(WriteOp op, Fallback reason, String detail) {
    stats.add(Counter.PLAIN_WRITES);
    Plan plan = plain(op);
    String instead = plan == PLAIN ? TransportNames.TCP : "the secure control connection";
    stats.fallback(TransportNames.NDN, instead, reason, peer, detail);
    return plan;
  }

  /** The stock port is no way for what stock code does not protect. */
  private Plan plain(WriteOp op) {
    return secured ? new Plan.Inline(preamble(op, settings.segmentBytes(), null)) : PLAIN;
  }
}

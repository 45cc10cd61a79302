package io.trunkline.hadoop.ndn.write;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.conf.TrafficCategory;
import io.trunkline.hadoop.conf.TransportNames;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.ndn.NoRoomException;
import io.trunkline.hadoop.ndn.wire.Preamble;
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
    this.settings = settings;
    this.category = category;
    this.peer = peer;
    this.inFlight = inFlight;
  }

  @Override
  public Plan plan(WriteOp op) {
    if (!op.mirrored()) {
      return PLAIN;
    }
    if (op.token()) {
      return plain(Fallback.BLOCK_TOKEN, op.id());
    }
    if (!op.firstHop()) {
      Inflow inflow = Inflow.upstreamOf(op);
      return inflow == null ? plain(Fallback.UPSTREAM_PLAIN, op.id()) : new Plan.Relay(inflow);
    }
    if (op.pipelineSize() == 1) {
      // Nobody shares what would be published: TCP has less to do.
      stats.add(Counter.PLAIN_WRITES);
      return PLAIN;
    }
    int chunk = op.checksum().getBytesPerChecksum();
    DataChecksum.Type type = op.checksum().getChecksumType();
    if (chunk > settings.segmentBytes()
        || type != DataChecksum.Type.CRC32 && type != DataChecksum.Type.CRC32C) {
      return plain(Fallback.CHECKSUM_KIND, op.id() + " has " + op.checksum());
    }
    return produce(op, settings.segmentBytes() / chunk * chunk);
  }

  private Plan produce(WriteOp op, int segmentBytes) {
    NdnNode node;
    try {
      node = NdnNode.acquire(settings, category);
    } catch (IOException e) {
      return plain(Fallback.NODE_DOWN, e.getMessage());
    }
    Preamble preamble =
        new Preamble(
            node.names().version(op.pool(), op.block(), op.genstamp()),
            Nonces.next(),
            segmentBytes);
    int retain =
        Math.max(settings.retainSegments(), inFlight.segments(op.checksum(), segmentBytes));
    NativePublisher publisher = new NativePublisher(node, preamble, op.id(), peer, retain);
    try {
      publisher.announce();
    } catch (NoRoomException e) {
      publisher.close(false);
      return plain(Fallback.NO_ROOM, e.getMessage());
    } catch (IOException e) {
      publisher.close(false);
      return plain(Fallback.NODE_DOWN, e.getMessage());
    }
    stats.add(Counter.NAMED_WRITES);
    return new Plan.Produce(preamble, publisher);
  }

  private Plan plain(Fallback reason, String detail) {
    stats.add(Counter.PLAIN_WRITES);
    stats.fallback(TransportNames.NDN, TransportNames.TCP, reason, peer, detail);
    return PLAIN;
  }
}

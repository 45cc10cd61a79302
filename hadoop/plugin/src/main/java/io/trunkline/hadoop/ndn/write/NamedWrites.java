package io.trunkline.hadoop.ndn.write;

import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.tap.PassThrough;
import io.trunkline.hadoop.tap.TapConnection;
import io.trunkline.hadoop.tap.TapListener;
import io.trunkline.hadoop.tap.TapOutput;
import io.trunkline.hadoop.tap.WriteHandler;
import io.trunkline.hadoop.wire.OpHeader;
import io.trunkline.hadoop.wire.WriteOp;
import java.io.IOException;
import java.util.Arrays;

/**
 * Makes named writes of what stock code writes to a DataNode's plug-in. Where it is no write by
 * name, the DataNode's stock port takes the plug-in's place before a byte has gone out: a header
 * carries the block token, which is nobody else's to see.
 */
public final class NamedWrites implements TapListener {
  /** The way of a connection that carries no write by name. */
  @FunctionalInterface
  public interface Exit {
    /**
     * Has the connection go on at the DataNode's stock port.
     *
     * @param connection the connection, on which nothing has been sent but a handshake
     * @param write whether it carries a write, or else something that the tap does not know
     * @throws IOException when it cannot go on there
     */
    void leave(TapConnection connection, boolean write) throws IOException;
  }

  private final Planner planner;
  private final Exit exit;

  /**
   * For one connection to a plug-in.
   *
   * @param planner decides how a write travels
   * @param exit the way of all else
   */
  public NamedWrites(Planner planner, Exit exit) {
    this.planner = planner;
    this.exit = exit;
  }

  @Override
  public WriteHandler write(WriteOp op, TapConnection connection, TapOutput out)
      throws IOException {
    Plan plan = op.header().length > OpHeader.MAX_NAMED_BYTES ? new Plan.Plain() : planner.plan(op);
    if (plan instanceof Plan.Produce produce) {
      put(produce.preamble(), out);
      return new PublishedWrite(op, produce, connection);
    }
    if (plan instanceof Plan.Relay relay) {
      put(relay.inflow().preamble(), out);
      TransferStats.get().add(Counter.NAMED_RELAYS);
      return new RelayedWrite(relay.inflow(), connection);
    }
    if (plan instanceof Plan.Inline inline) {
      put(inline.preamble(), out);
      return new InlineWrite();
    }
    exit.leave(connection, true);
    return PassThrough.INSTANCE;
  }

  private static void put(Preamble preamble, TapOutput out) {
    byte[] first = preamble.encode();
    out.reserve(first.length).put(first);
    Arrays.fill(first, (byte) 0);
  }

  @Override
  public void other(TapConnection connection) throws IOException {
    exit.leave(connection, false);
  }
}

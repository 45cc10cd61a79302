package io.trunkline.hadoop.mirror;

import io.trunkline.hadoop.tap.PassThrough;
import io.trunkline.hadoop.tap.TapConnection;
import io.trunkline.hadoop.tap.TapListener;
import io.trunkline.hadoop.tap.TapOutput;
import io.trunkline.hadoop.tap.WriteHandler;
import io.trunkline.hadoop.wire.WriteOp;
import java.io.IOException;
import java.util.List;

/**
 * Has a DataNode's connection to the next of a pipeline reported, and that of the client by the
 * first DataNode: a client needs no plug-in. All bytes pass as they are, at once; what comes in of
 * the block is waited for by packets.
 */
final class MirrorWrites implements TapListener {
  private final Upstream upstream;
  private final Reports reports;

  /**
   * For one connection.
   *
   * @param upstream the connection on which the block comes to this DataNode
   * @param reports report what is mirrored
   */
  MirrorWrites(Upstream upstream, Reports reports) {
    this.upstream = upstream;
    this.reports = reports;
  }

  @Override
  public WriteHandler write(WriteOp op, TapConnection connection, TapOutput out)
      throws IOException {
    if (!Hop.canBeReported(op)) {
      return PassThrough.INSTANCE;
    }
    long began = System.nanoTime();
    int next = op.position() + 1;
    Hop onward = Hop.of(op, next, new Ends(connection.local(), connection.remote()));
    PassThrough report =
        reports.take(next == 2 ? List.of(Hop.of(op, 1, upstream.ends()), onward) : List.of(onward));
    WholePackets packets = WholePackets.on(upstream.in());
    Reports.held(System.nanoTime() - began);
    return packets == null ? report : new Relay(report, packets);
  }

  @Override
  public void other(TapConnection connection) {
    // not to be mirrored
  }

  /** While a block is passed on it is reported, and read by whole packets. */
  private record Relay(PassThrough report, WholePackets packets) implements PassThrough {
    @Override
    public void headerSent() {
      report.headerSent();
    }

    @Override
    public void close() {
      packets.end();
      report.close();
    }
  }
}

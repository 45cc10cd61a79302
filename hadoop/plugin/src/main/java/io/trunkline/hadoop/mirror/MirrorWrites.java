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
 * first DataNode: a client needs no plug-in. All bytes pass as they are, at once.
 */
final class MirrorWrites implements TapListener {
  private final Ends upstream;
  private final Reports reports;

  /**
   * For one connection.
   *
   * @param upstream the connection on which the block comes to this DataNode
   * @param reports report what is mirrored
   */
  MirrorWrites(Ends upstream, Reports reports) {
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
        reports.take(next == 2 ? List.of(Hop.of(op, 1, upstream), onward) : List.of(onward));
    Reports.held(System.nanoTime() - began);
    return report;
  }

  @Override
  public void other(TapConnection connection) {
    // not to be mirrored
  }
}

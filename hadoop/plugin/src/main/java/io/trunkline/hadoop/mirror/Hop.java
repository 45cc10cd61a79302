package io.trunkline.hadoop.mirror;

import io.trunkline.hadoop.conf.JsonText;
import io.trunkline.hadoop.wire.WriteOp;

/**
 * A connection of a pipeline, as it is reported. It outlives the write's header, of which it keeps
 * what is short.
 *
 * @param pool block pool
 * @param block block id
 * @param genstamp generation stamp that the block gets by the write
 * @param replicas DataNodes of the pipeline
 * @param client Hadoop's name of the client
 * @param stage stage of the pipeline
 * @param position of the replica that the connection leads to: 1 is the client's
 * @param ends its ends
 */
record Hop(
    String pool,
    long block,
    long genstamp,
    int replicas,
    String client,
    String stage,
    int position,
    Ends ends) {
  /** Longest name of a pool or a client that a controller takes, in characters. */
  private static final int MAX_NAME = 255;

  static Hop of(WriteOp op, int position, Ends ends) {
    return new Hop(
        op.pool(),
        op.block(),
        op.genstamp(),
        op.pipelineSize(),
        op.client(),
        op.stage().name(),
        position,
        ends);
  }

  /**
   * Whether a DataNode that sends this header onward has something to report.
   *
   * @param op the header
   * @return true for the write of a client to two replicas or more
   */
  static boolean canBeReported(WriteOp op) {
    int sender = op.position(); // from 1, as the header's receiver is told from 0
    return op.mirrored()
        && sender >= 1
        && sender < op.pipelineSize()
        && op.pool().length() <= MAX_NAME
        && op.client().length() <= MAX_NAME;
  }

  /** Whether it leads to the last replica. */
  boolean last() {
    return position == replicas;
  }

  /** Names the block in logs as Hadoop does. */
  String blockName() {
    return pool + ":blk_" + block + "_" + genstamp;
  }

  /**
   * What is reported of it, to POST /v1/mirrors of the controller.
   *
   * @param waitMs how long the answer may wait for the pipeline to be armed, in milliseconds
   * @return JSON
   */
  String json(int waitMs) {
    JsonText json = new JsonText();
    json.text("pool", pool);
    json.number("block", block);
    json.number("generation", genstamp);
    json.number("position", position);
    json.number("replicas", replicas);
    json.text("client", client);
    json.text("stage", stage);
    ends.write(json);
    json.number("wait_ms", waitMs);
    return json.end();
  }
}

package io.trunkline.hadoop.ndn.write;

import io.trunkline.hadoop.wire.WriteOp;

/** Decides how a write travels, once its header is known. */
@FunctionalInterface
public interface Planner {
  /**
   * Decides.
   *
   * @param op what the header says
   * @return the plan
   */
  Plan plan(WriteOp op);
}

package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.wire.WriteOp;

/** The replicas that a DataNode answers for by name, and what becomes of them by a write. */
interface ServedReplicas extends AutoCloseable {
  /**
   * A block is about to be written to: what was answered for it holds no more.
   *
   * @param op the write
   * @param preamble what the write's segments are
   * @return takes note of the segments that come, null when nobody wants to know
   */
  WriteKeys.Write begins(WriteOp op, Preamble preamble);

  @Override
  void close();
}

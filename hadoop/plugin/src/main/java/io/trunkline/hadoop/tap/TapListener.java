package io.trunkline.hadoop.tap;

import io.trunkline.hadoop.wire.WriteOp;
import java.io.IOException;

/**
 * Decides what becomes of one data-transfer connection, once stock code has written enough to tell
 * what it is for. Nothing has left the connection by then, and nothing does before the answer,
 * which may take its time: stock code's write waits for it.
 */
public interface TapListener {
  /**
   * The op header of a write is whole.
   *
   * @param op what it says
   * @param connection what the tap sits on
   * @param out takes what is to be sent before the header, which the tap sends itself
   * @return what looks after the rest of the connection
   * @throws IOException when the connection has failed
   */
  WriteHandler write(WriteOp op, TapConnection connection, TapOutput out) throws IOException;

  /**
   * The connection carries no write, or does not say what it carries: all of it passes as it is.
   *
   * @param connection what the tap sits on
   * @throws IOException when the connection has failed
   */
  void other(TapConnection connection) throws IOException;
}

package io.trunkline.hadoop.tap;

import io.trunkline.hadoop.wire.PacketHead;
import java.io.IOException;

/** Sends something else in place of each packet. */
public non-sealed interface PacketRewriter extends WriteHandler {
  /**
   * A packet is whole. It counts as sent when all has gone out that is put for it.
   *
   * @param head its lengths and header
   * @param body array with its body: checksums, then data; valid during the call only
   * @param off where the body begins
   * @param out takes what is sent in its place
   * @throws IOException when the connection has failed
   */
  void packet(PacketHead head, byte[] body, int off, TapOutput out) throws IOException;
}

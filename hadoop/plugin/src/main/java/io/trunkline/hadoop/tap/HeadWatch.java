package io.trunkline.hadoop.tap;

import io.trunkline.hadoop.wire.PacketHead;
import java.io.IOException;

/** Lets all packets pass as they are, and is shown the first of them before they leave. */
public non-sealed interface HeadWatch extends WriteHandler {
  /**
   * A packet begins. Nothing of it leaves before this returns; all before it has been handed to the
   * system. This may wait, for which stock code's write waits, and ends when {@link #close} is
   * called.
   *
   * @param head the packet's lengths and header
   * @return true to be shown the next one too; false to let all that follows pass unseen
   * @throws IOException when the connection has failed
   */
  boolean head(PacketHead head) throws IOException;
}

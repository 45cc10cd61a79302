package io.trunkline.hadoop.ucx;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import org.openucx.jucx.UcxUtils;
import org.openucx.jucx.ucp.UcpConstants;
import org.openucx.jucx.ucp.UcpEndpoint;
import org.openucx.jucx.ucp.UcpRequest;
import org.openucx.jucx.ucp.UcpRequestParams;
import org.openucx.jucx.ucs.UcsConstants;

/**
 * Frames without stream data on their way to one peer. A few slots of memory are lent to UCX in
 * turn; what does not fit waits in a queue whose length the connection watches.
 */
final class ControlFrames {
  private static final int SLOTS = 16;
  private static final int SLOT_BYTES = 128;

  private record QueuedFrame(
      int type, int detail, int stream, long token, long sequence, Greeting greeting) {}

  private final ByteBuffer memory = ByteBuffer.allocateDirect(SLOTS * SLOT_BYTES);
  private final long address = UcxUtils.getAddress(memory);
  private final UcpRequest[] requests = new UcpRequest[SLOTS];
  private final ArrayDeque<QueuedFrame> queue = new ArrayDeque<>();
  private final UcpRequestParams params =
      new UcpRequestParams().setMemoryType(UcsConstants.MEMORY_TYPE.UCS_MEMORY_TYPE_HOST);
  private int next;

  void add(int type, int detail, int stream, long token, long sequence, Greeting greeting) {
    queue.add(new QueuedFrame(type, detail, stream, token, sequence, greeting));
  }

  int queued() {
    return queue.size();
  }

  /** Whether UCX is still at one that was sent. */
  boolean underWay() {
    for (UcpRequest request : requests) {
      if (request != null && !request.isCompleted()) {
        return true;
      }
    }
    return false;
  }

  /**
   * Sends as many as there are free slots.
   *
   * @param endpoint of the peer
   * @return how many went
   * @throws RuntimeException when the endpoint has failed
   */
  int send(UcpEndpoint endpoint) {
    int sent = 0;
    while (!queue.isEmpty() && (requests[next] == null || requests[next].isCompleted())) {
      QueuedFrame frame = queue.poll();
      int at = next * SLOT_BYTES;
      int bytes = 0;
      long flags = UcpConstants.UCP_AM_SEND_FLAG_EAGER;
      if (frame.greeting() != null) {
        bytes = Greeting.BYTES;
        frame.greeting().put(memory, at + Frame.BYTES);
        if (frame.type() == Frame.HELLO) {
          flags |= UcpConstants.UCP_AM_SEND_FLAG_REPLY;
        }
      }
      Frame.put(
          memory,
          at,
          frame.type(),
          frame.detail(),
          frame.stream(),
          frame.token(),
          frame.sequence(),
          bytes);
      requests[next] =
          endpoint.sendAmNonBlocking(
              Connections.MESSAGE_ID,
              address + at,
              Frame.BYTES,
              address + at + Frame.BYTES,
              bytes,
              flags,
              null,
              params);
      next = (next + 1) % SLOTS;
      sent++;
    }
    return sent;
  }
}

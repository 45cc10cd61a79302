package io.trunkline.hadoop.ndn.write;

import io.trunkline.hadoop.ndn.wire.SegmentCut;
import io.trunkline.hadoop.wire.PacketHead;
import java.util.ArrayDeque;

/**
 * The packets of a write whose bodies were published, until the whole pipeline has acknowledged
 * them; and those of them whose bodies a DataNode has asked for. Acknowledged by whoever reads,
 * beside the other calls, which are one at a time.
 */
final class Unacknowledged {
  /**
   * A packet.
   *
   * @param head its lengths and header
   * @param block whether its body is segments of the block, or else of the writer's stream
   * @param first number of the first segment
   * @param cut the segments
   */
  record Published(PacketHead head, boolean block, long first, SegmentCut cut) {
    private long last() {
      return first + cut.count() - 1;
    }
  }

  /** Used with its lock. */
  private final ArrayDeque<Published> packets = new ArrayDeque<>();

  /** What is to be sent again. */
  private final ArrayDeque<Published> again = new ArrayDeque<>();

  /** Sequence number of the first packet of which a DataNode has asked for the body. */
  private long againFrom = Long.MAX_VALUE;

  void add(Published packet) {
    synchronized (packets) {
      packets.add(packet);
    }
  }

  /**
   * Forgets what all DataNodes have, and has it forgotten.
   *
   * @param seqno sequence number of the newest packet that they have
   * @param publisher published the bodies
   */
  void acknowledged(long seqno, Publisher publisher) {
    long block = -1;
    long stream = -1;
    synchronized (packets) {
      Published oldest;
      while ((oldest = packets.peek()) != null && oldest.head().seqno() <= seqno) {
        packets.remove();
        if (oldest.block()) {
          block = oldest.last();
        } else {
          stream = oldest.last();
        }
      }
    }
    if (block >= 0) {
      publisher.blockAcknowledged(block);
    }
    if (stream >= 0) {
      publisher.streamAcknowledged(stream);
    }
  }

  /**
   * Bodies are asked for. Those that were asked for before are not sent twice.
   *
   * @param seqno sequence number of the first packet whose body is wanted
   */
  void ask(long seqno) {
    if (seqno >= againFrom) {
      return;
    }
    synchronized (packets) {
      for (Published packet : packets) {
        if (packet.head().seqno() >= seqno && packet.head().seqno() < againFrom) {
          again.add(packet);
        }
      }
    }
    againFrom = seqno;
  }

  /** The next packet whose body was asked for, once; null when there is none. */
  Published nextAgain() {
    return again.poll();
  }
}

package io.trunkline.hadoop.ndn.write;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.StockBytes;
import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.ndn.Native;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.ndn.NoRoomException;
import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.ndn.wire.SegmentCut;
import io.trunkline.hadoop.ndn.wire.SegmentCut.Piece;
import io.trunkline.hadoop.wire.PacketHead;
import java.io.IOException;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A write's producers in a forwarder with room for two. */
@Timeout(60)
class NativePublisherTest {
  private static final String NAME = "/hadoop/blocks/BP-1/1/v=1";

  /** Segments of each: twice that many, of the largest size, are what the smallest bound holds. */
  private static final int RETAINED = 63;

  private static final String RETAINED_IN_ALL = "8388608";

  private final byte[] body = new byte[1 << 16];
  private final byte[] digests = new byte[16];

  private static Piece piece() throws IOException {
    byte[] packet = StockBytes.packet(0, 0, false, new byte[StockBytes.SEGMENT]);
    int body = StockBytes.CHECKSUM.getChecksumSize(StockBytes.SEGMENT) + StockBytes.SEGMENT;
    PacketHead head = PacketHead.parse(Arrays.copyOf(packet, packet.length - body));
    return new SegmentCut(head, StockBytes.CHECKSUM, StockBytes.SEGMENT).piece(0);
  }

  private void stream(NativePublisher publisher, long segment) throws IOException {
    publisher.stream(segment, piece(), body, 0, false, digests, 0);
  }

  @Test
  void aStreamThatWasRefusedIsNotAskedForWithEveryPacket() throws IOException {
    Configuration conf = new Configuration(false);
    conf.set("trunkline.ndn.retain.bytes", RETAINED_IN_ALL);
    Settings settings = Settings.from(conf);
    try (NdnNode node = NdnNode.acquire(settings, null)) {
      NativePublisher publisher = publisher(settings);
      publisher.block(0, piece(), body, 0, false, digests, 0);
      long other = Native.producerOpen(node.handle(), NAME + "/other", 64512, RETAINED, null, 0);
      assertThrows(NoRoomException.class, () -> stream(publisher, 0));
      Native.producerClose(other, 0);
      assertThrows(NoRoomException.class, () -> stream(publisher, 0), "asked again");
      publisher.block(1, piece(), body, 0, false, digests, 0);
      assertTrue(publisher.kept(true, 1, piece(), new byte[body.length]));
      NativePublisher next = publisher(settings);
      stream(next, 0);
      next.close(false);
      publisher.close(true);
    }
  }

  private static NativePublisher publisher(Settings settings) throws IOException {
    Preamble preamble = new Preamble(NAME, 7, StockBytes.SEGMENT);
    return new NativePublisher(
        NdnNode.acquire(settings, null), preamble, "blk_1", "dn", RETAINED, 64512);
  }
}

package io.trunkline.hadoop.wire;

import static org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.Status.CHECKSUM_OK;
import static org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.Status.SUCCESS;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.StockBytes;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.PipelineAckProto;
import org.apache.hadoop.thirdparty.protobuf.InvalidProtocolBufferException;
import org.junit.jupiter.api.Test;

class AckReaderTest {
  private static byte[] conversation() throws IOException {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    out.write(StockBytes.writeAnswer());
    for (long seqno = 0; seqno < 5; seqno++) {
      out.write(StockBytes.ack(seqno, SUCCESS, SUCCESS, SUCCESS));
      out.write(StockBytes.ack(-1, SUCCESS, SUCCESS, SUCCESS));
    }
    out.write(StockBytes.ack(5, SUCCESS, CHECKSUM_OK, SUCCESS));
    return out.toByteArray();
  }

  @Test
  void acknowledgementsAreFoundHoweverTheReadsWereCut() throws IOException {
    byte[] all = conversation();
    Random random = new Random(7);
    for (int round = 0; round < 100; round++) {
      AckReader reader = new AckReader();
      List<Long> found = new ArrayList<>();
      for (int at = 0; at < all.length; ) {
        int part = Math.min(all.length - at, 1 + random.nextInt(round < 50 ? 3 : 40));
        ByteBuffer read = ByteBuffer.wrap(all, at, part);
        long seqno = reader.accept(read);
        assertEquals(0, read.remaining());
        if (seqno != AckReader.NONE) {
          found.add(seqno);
        }
        at += part;
      }
      assertEquals(4L, found.get(found.size() - 1));
      assertEquals(found.stream().sorted().toList(), found);
    }
  }

  @Test
  void whatIsNoAcknowledgementIsLeftToStockCode() throws IOException {
    AckReader reader = new AckReader();
    reader.accept(ByteBuffer.wrap(StockBytes.writeAnswer()));
    byte[] endless = {-1, -1, -1, -1, -1};
    assertEquals(AckReader.NONE, reader.accept(ByteBuffer.wrap(endless)));
    byte[] ack = StockBytes.ack(3, SUCCESS);
    assertEquals(AckReader.NONE, reader.accept(ByteBuffer.wrap(ack)));

    byte[] all = conversation();
    Random random = new Random(9);
    for (int round = 0; round < 5000; round++) {
      byte[] hostile = all.clone();
      for (int i = 1 + random.nextInt(4); i > 0; i--) {
        hostile[random.nextInt(hostile.length)] = (byte) random.nextInt();
      }
      new AckReader().accept(ByteBuffer.wrap(hostile));
    }
  }

  @Test
  void acknowledgementsAreReadAsStockCodeReadsThem() throws IOException {
    Random random = new Random(11);
    int agreed = 0;
    for (int round = 0; round < 50_000; round++) {
      byte[] message = acknowledgement(random);
      int damages = random.nextInt(3);
      for (int i = 0; i < damages; i++) {
        message[random.nextInt(message.length)] = (byte) random.nextInt();
      }
      long ours = read(message);
      PipelineAckProto stock;
      try {
        stock = PipelineAckProto.parseFrom(message);
      } catch (InvalidProtocolBufferException e) {
        continue; // Stock code ends the write.
      }
      boolean byAll = stock.getReplyList().stream().allMatch(SUCCESS::equals);
      if (damages == 0) {
        assertEquals(byAll ? Math.max(stock.getSeqno(), AckReader.NONE) : AckReader.NONE, ours);
        agreed++;
      } else if (ours != AckReader.NONE) {
        assertTrue(byAll);
      }
    }
    assertTrue(agreed > 10_000, "agreed on " + agreed);
  }

  private static byte[] acknowledgement(Random random) {
    PipelineAckProto.Builder written =
        PipelineAckProto.newBuilder()
            .setSeqno(random.nextLong() >> random.nextInt(Long.SIZE))
            .setDownstreamAckTimeNanos(random.nextLong())
            .addFlag(random.nextInt());
    for (int replies = random.nextInt(4); replies > 0; replies--) {
      written.addReply(random.nextInt(8) == 0 ? CHECKSUM_OK : SUCCESS);
    }
    return written.build().toByteArray();
  }

  /** What a reader takes from one acknowledgement. */
  private static long read(byte[] message) throws IOException {
    AckReader reader = new AckReader();
    reader.accept(ByteBuffer.wrap(StockBytes.writeAnswer()));
    reader.accept(ByteBuffer.wrap(new byte[] {(byte) message.length}));
    return reader.accept(ByteBuffer.wrap(message));
  }

  @Test
  void statusesMayStandInOneField() throws IOException {
    byte seqnoOf3 = 6;
    byte packed = 2 << 3 | 2;
    assertEquals(3, read(new byte[] {8, seqnoOf3, packed, 2, 0, 0}));
    assertEquals(AckReader.NONE, read(new byte[] {8, seqnoOf3, packed, 2, 0, 1}));
  }
}

package io.trunkline.hadoop.wire;

import static org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.Status.CHECKSUM_OK;
import static org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.Status.SUCCESS;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.trunkline.hadoop.StockBytes;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
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
}

package io.trunkline.hadoop.ndn.datanode;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.StockBytes;
import io.trunkline.hadoop.ndn.wire.ControlRecord;
import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.ndn.write.Inflow;
import io.trunkline.hadoop.wire.OpHeader;
import io.trunkline.hadoop.wire.PacketHead;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.util.Arrays;
import org.apache.hadoop.hdfs.protocol.datatransfer.BlockConstructionStage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Whoever writes may send bodies again without end, for packets that never come. */
class ControlRecordsTest {
  /** Bodies for one packet after the other, and no record of them. */
  private static final class Endless extends InputStream {
    private final int dataBytes;
    private long seqno;
    private byte[] now = new byte[0];
    private int at;

    Endless(int dataBytes) {
      this.dataBytes = dataBytes;
    }

    private void more() throws IOException {
      byte[] packet = StockBytes.packet(0, seqno++, false, new byte[dataBytes]);
      int body = dataBytes == 0 ? 0 : dataBytes + 4 * ((dataBytes + 511) / 512);
      PacketHead head = PacketHead.parse(Arrays.copyOf(packet, packet.length - body));
      ByteBuffer record = ByteBuffer.allocate(ControlRecord.MAX_BYTES);
      ControlRecord.again(head).encode(record);
      now = Arrays.copyOf(record.array(), record.position() + body);
      at = 0;
    }

    @Override
    public int read() {
      throw new UnsupportedOperationException();
    }

    @Override
    public int read(byte[] to, int off, int length) throws IOException {
      if (at == now.length) {
        more();
      }
      int count = Math.min(length, now.length - at);
      System.arraycopy(now, at, to, off, count);
      at += count;
      return count;
    }
  }

  private static Inflow inflow() throws IOException {
    byte[] header = StockBytes.writeHeader(1, BlockConstructionStage.PIPELINE_SETUP_CREATE, "c");
    return Inflow.open(
        OpHeader.parseWrite(ByteBuffer.wrap(header)),
        new Preamble("/hadoop/blocks/BP-1/1/v=1", 1, StockBytes.SEGMENT),
        seqno -> {});
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 60_000})
  void bodiesOfPacketsThatNeverComeAreBounded(int dataBytes) throws IOException {
    Endless endless = new Endless(dataBytes);
    try (Inflow inflow = inflow();
        ControlRecords records =
            new ControlRecords(
                new ControlInput(endless, Channels.newChannel(InputStream.nullInputStream())),
                inflow)) {
      assertThrows(IOException.class, records::next);
      long kept = endless.seqno * (512L + dataBytes);
      assertTrue(kept <= ReadAhead.MAX_BYTES + 600_000, kept + " bytes for nothing");
    }
    assertEquals(0, ReadAhead.inAll());
  }

  /** None is refused where nothing but the bound is in its way. */
  @Test
  void theBoundIsWhatEndsIt() throws IOException {
    Endless endless = new Endless(60_000);
    try (Inflow inflow = inflow();
        ControlRecords records =
            new ControlRecords(
                new ControlInput(endless, Channels.newChannel(InputStream.nullInputStream())),
                inflow)) {
      assertThrows(IOException.class, records::next);
      assertTrue(endless.seqno > 200, "only " + endless.seqno);
    }
  }
}

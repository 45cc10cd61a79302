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
import java.io.ByteArrayInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.ReadableByteChannel;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
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
      now = again(seqno++, dataBytes);
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

  /** The record of a body that comes again, and the body. */
  private static byte[] again(long seqno, int dataBytes) throws IOException {
    byte[] packet = StockBytes.packet(0, seqno, false, new byte[dataBytes]);
    int body = dataBytes == 0 ? 0 : dataBytes + 4 * ((dataBytes + 511) / 512);
    PacketHead head = PacketHead.parse(Arrays.copyOf(packet, packet.length - body));
    ByteBuffer record = ByteBuffer.allocate(ControlRecord.MAX_BYTES);
    ControlRecord.again(head).encode(record);
    return Arrays.copyOf(record.array(), record.position() + body);
  }

  /** The beginning of a stream, and how much room was taken when no more of it came. */
  private static final class Beginning extends ByteArrayInputStream {
    private long taken;

    Beginning(byte[] bytes, int length) {
      super(bytes, 0, length);
    }

    @Override
    public int read(byte[] to, int off, int length) {
      int count = super.read(to, off, length);
      if (count < 0) {
        taken = ReadAhead.inAll();
      }
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

  /** Records by name with as many digests as fit, for packets that nobody publishes. */
  @Test
  void recordsThatAreReadAheadAreBounded() throws IOException {
    AtomicLong given = new AtomicLong();
    byte[] record = PermissionTest.record(ControlRecord.MAX_SEGMENTS);
    ReadableByteChannel ready =
        new ReadableByteChannel() {
          private int at;

          @Override
          public int read(ByteBuffer to) {
            int count = Math.min(to.remaining(), record.length - at);
            to.put(record, at, count);
            at = (at + count) % record.length;
            given.addAndGet(count);
            return count;
          }

          @Override
          public boolean isOpen() {
            return true;
          }

          @Override
          public void close() {}
        };
    try (Inflow inflow = inflow();
        ControlRecords records =
            new ControlRecords(new ControlInput(new ByteArrayInputStream(record), ready), inflow)) {
      assertEquals(ControlRecord.BLOCK_SEGMENT, records.next().record().kind());
      assertEquals(null, records.cameAgain(0));
      long kept = given.get();
      assertTrue(kept <= ReadAhead.MAX_BYTES + 50_000, kept + " bytes read ahead");
      assertTrue(kept >= ReadAhead.MAX_BYTES / 2, "only " + kept);
      // What is taken out of the queue gives its room back.
      long before = ReadAhead.inAll();
      records.next();
      assertTrue(ReadAhead.inAll() <= before - record.length);
    }
    assertEquals(0, ReadAhead.inAll());
  }

  /** A head that promises much costs its sender nothing. */
  @ParameterizedTest
  @ValueSource(ints = {1000, 300_000, 5_000_000})
  void roomIsTakenAsBytesCome(int length) throws IOException {
    Beginning beginning = new Beginning(again(1, 15_000_000), length);
    try (Inflow inflow = inflow();
        ControlRecords records =
            new ControlRecords(
                new ControlInput(beginning, Channels.newChannel(InputStream.nullInputStream())),
                inflow)) {
      assertThrows(EOFException.class, records::next);
      assertTrue(beginning.taken <= 2L * length + 70_000, beginning.taken + " bytes of room");
      assertTrue(beginning.taken >= length - 1000, beginning.taken + " bytes of room");
    }
  }

  @Test
  void greedyConnectionsLeaveRoomForTheNextOne() {
    List<ReadAhead> greedy = Stream.generate(ReadAhead::new).limit(100).toList();
    boolean taken = true;
    while (taken) {
      taken = false;
      for (ReadAhead one : greedy) {
        taken |= one.take(64 << 10);
      }
    }
    assertTrue(ReadAhead.inAll() > ReadAhead.MAX_BYTES_IN_ALL * 9 / 10);
    try (ReadAhead next = new ReadAhead()) {
      assertTrue(next.take(1 << 20));
    }
    greedy.forEach(ReadAhead::close);
    assertEquals(0, ReadAhead.inAll());
  }
}

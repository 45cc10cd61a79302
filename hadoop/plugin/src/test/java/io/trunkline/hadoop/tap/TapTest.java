package io.trunkline.hadoop.tap;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.StockBytes;
import io.trunkline.hadoop.wire.PacketHead;
import io.trunkline.hadoop.wire.WriteOp;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.channels.Channels;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.hdfs.protocol.datatransfer.BlockConstructionStage;
import org.junit.jupiter.api.Test;

class TapTest {
  private static final byte[] HEADER =
      StockBytes.writeHeader(3, BlockConstructionStage.PIPELINE_SETUP_CREATE, "client");
  private static final byte[] READ = {0, 28, 81, 5, 1, 2, 3, 4, 5};
  private static final byte[] SASL = {(byte) 0xDE, (byte) 0xAD, (byte) 0xBE, (byte) 0xEF, 1};

  private final ByteArrayOutputStream sent = new ByteArrayOutputStream();

  /** Looks at the first heads, and notes what has been sent when it is told something. */
  private final class Watch implements TapListener, HeadWatch {
    final List<String> told = new ArrayList<>();
    int wanted;
    int closed;

    @Override
    public WriteHandler write(WriteOp op, TapConnection connection, TapOutput out) {
      told.add("write at " + sent.size());
      assertEquals(0, op.position());
      assertArrayEquals(HEADER, op.header());
      return wanted == 0 ? PassThrough.INSTANCE : this;
    }

    @Override
    public void other(TapConnection connection) {
      told.add("other at " + sent.size());
    }

    @Override
    public boolean head(PacketHead head) {
      told.add("packet " + head.seqno() + " at " + sent.size());
      return --wanted > 0;
    }

    @Override
    public void close() {
      closed++;
    }
  }

  private BytesTap tap(TapListener listener) {
    return new BytesTap(listener, Channels.newChannel(sent));
  }

  /** Packets, one after the other; returns what a watch is told of the first of them. */
  private static List<String> packets(Random random, int shown, ByteArrayOutputStream all)
      throws IOException {
    List<String> told = new ArrayList<>();
    long offset = 0;
    for (int seqno = 0; seqno < 8; seqno++) {
      if (seqno < shown) {
        told.add("packet " + seqno + " at " + all.size());
      }
      byte[] data = StockBytes.random(random, seqno == 3 ? 0 : 1 + random.nextInt(70_000));
      all.write(StockBytes.packet(offset, seqno, false, data));
      offset += data.length;
    }
    return told;
  }

  @Test
  void headsAreShownBeforeTheirPacketsLeaveWhereverTheWritesWereCut() throws IOException {
    Random random = new Random(5);
    for (int round = 0; round < 100; round++) {
      ByteArrayOutputStream all = new ByteArrayOutputStream();
      all.write(HEADER);
      int shown = round % 9;
      List<String> expected = new ArrayList<>(List.of("write at 0"));
      expected.addAll(packets(random, shown, all));
      Watch watch = new Watch();
      watch.wanted = shown;
      sent.reset();
      BytesTap tap = tap(watch);
      byte[] stock = all.toByteArray();
      int at = 0;
      while (at < stock.length) {
        int most = round % 3 == 0 ? 40 : 100_000;
        int part = Math.min(stock.length - at, 1 + random.nextInt(most));
        tap.write(Arrays.copyOfRange(stock, at, at + part));
        at += part;
      }
      assertArrayEquals(stock, sent.toByteArray());
      assertEquals(expected, watch.told);
      assertTrue(tap.passesAll());
    }
  }

  @Test
  void allInOneWriteIsNoDifference() throws IOException {
    ByteArrayOutputStream all = new ByteArrayOutputStream();
    all.write(HEADER);
    List<String> expected = new ArrayList<>(List.of("write at 0"));
    expected.addAll(packets(new Random(6), 2, all));
    Watch watch = new Watch();
    watch.wanted = 2;
    BytesTap tap = tap(watch);
    tap.write(all.toByteArray());
    assertArrayEquals(all.toByteArray(), sent.toByteArray());
    assertEquals(expected, watch.told);
    assertTrue(tap.passesAll());
  }

  @Test
  void whatIsNoWritePassesAsItIs() throws IOException {
    for (byte[] begin : new byte[][] {READ, SASL}) {
      sent.reset();
      Watch watch = new Watch();
      BytesTap tap = tap(watch);
      for (byte b : begin) {
        tap.write(new byte[] {b});
      }
      assertTrue(tap.passesAll());
      assertEquals(List.of("other at 0"), watch.told);
      assertArrayEquals(begin, sent.toByteArray());
      assertArrayEquals(SASL, tap.answered(SASL));
      tap.close();
      assertEquals(0, watch.closed, "it looks after no write");
    }
  }

  @Test
  void anUnfinishedHeaderStays() throws IOException {
    Watch watch = new Watch();
    BytesTap tap = tap(watch);
    tap.write(Arrays.copyOf(HEADER, HEADER.length - 1));
    assertEquals(0, sent.size());
    assertEquals(List.of(), watch.told);
    assertFalse(tap.passesAll());
    tap.close();
    assertEquals(0, watch.closed);
  }

  @Test
  void answersPassAsTheyAre() throws IOException {
    Watch watch = new Watch();
    watch.wanted = 1;
    BytesTap tap = tap(watch);
    tap.write(HEADER);
    assertArrayEquals(StockBytes.writeAnswer(), tap.answered(StockBytes.writeAnswer()));
  }

  @Test
  void whoeverLooksAfterAWriteIsClosedOnce() throws IOException {
    Watch watch = new Watch();
    watch.wanted = 1;
    BytesTap tap = tap(watch);
    tap.write(HEADER);
    assertEquals(0, watch.closed);
    tap.close();
    tap.close();
    assertEquals(1, watch.closed);
  }

  @Test
  void whoeverComesWhenTheConnectionHasEndedIsClosedToo() throws IOException {
    Watch watch = new Watch();
    BytesTap[] tap = new BytesTap[1];
    TapListener slow =
        new TapListener() {
          @Override
          public WriteHandler write(WriteOp op, TapConnection connection, TapOutput out) {
            tap[0].close();
            return watch;
          }

          @Override
          public void other(TapConnection connection) {}
        };
    tap[0] = tap(slow);
    tap[0].write(HEADER);
    assertEquals(1, watch.closed);
  }
}

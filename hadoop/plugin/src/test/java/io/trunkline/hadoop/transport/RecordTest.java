package io.trunkline.hadoop.transport;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** DataNodes that are asked by UDP. */
@Timeout(60)
class RecordTest {
  private static final InetAddress LOCAL = InetAddress.getLoopbackAddress();
  private static final DataNodeRecord RECORD = new DataNodeRecord(1, true, "", 4567, "");

  private static InetSocketAddress freePort() throws IOException {
    try (DatagramSocket free = new DatagramSocket(0, LOCAL)) {
      return (InetSocketAddress) free.getLocalSocketAddress();
    }
  }

  @Test
  void aDataNodeAnswers() throws IOException {
    InetSocketAddress at = freePort();
    try (RecordServer server = new RecordServer(at, "ucx", RECORD)) {
      for (int i = 0; i < 50; i++) {
        assertEquals(RECORD, new RecordQuestion("ucx", 2000).ask(at));
      }
    }
  }

  /** Whatever answers at a DataNode's port, clients are sent to no other host. */
  @Test
  void oneThatNamesAnotherHostIsRefused() throws IOException {
    InetSocketAddress at = freePort();
    DataNodeRecord elsewhere = new DataNodeRecord(1, true, "192.0.2.66", 4567, "");
    try (RecordServer server = new RecordServer(at, "ucx", elsewhere)) {
      Discovery discovery = new Discovery(new RecordQuestion("ucx", 2000), 1, System::nanoTime);
      assertEquals(Discovery.Outcome.OTHER_HOST, discovery.route(at).outcome());
    }
  }

  /** On a host with several addresses the answer comes from the one that was asked. */
  @Test
  void oneThatListensEverywhereAnswersAtEachAddress() throws IOException {
    InetSocketAddress at = freePort();
    InetSocketAddress everywhere = new InetSocketAddress("0.0.0.0", at.getPort());
    try (RecordServer server = new RecordServer(everywhere, "ucx", RECORD)) {
      assertEquals(RECORD, new RecordQuestion("ucx", 2000).ask(at));
    }
  }

  @Test
  void oneWithoutThePluginIsFoundOutAtOnce() throws IOException {
    InetSocketAddress nobody = freePort();
    IOException e =
        assertThrows(IOException.class, () -> new RecordQuestion("ucx", 30_000).ask(nobody));
    assertTrue(e.getMessage().contains("nobody answers at UDP port"), e.getMessage());
  }

  @Test
  void anotherTransportIsNotAnsweredFor() throws IOException {
    InetSocketAddress at = freePort();
    try (RecordServer server = new RecordServer(at, "ucx", RECORD)) {
      IOException e = assertThrows(IOException.class, () -> new RecordQuestion("ndn", 40).ask(at));
      assertTrue(e.getMessage().contains("no answer"), e.getMessage());
    }
  }

  @Test
  void strangersChangeNothing() throws IOException {
    InetSocketAddress at = freePort();
    Random random = new Random(1);
    try (RecordServer server = new RecordServer(at, "ucx", RECORD);
        DatagramSocket stranger = new DatagramSocket()) {
      for (int length : new int[] {0, 1, 4, 13, 511, 512, 513, 5000}) {
        byte[] bytes = new byte[length];
        random.nextBytes(bytes);
        stranger.send(new DatagramPacket(bytes, length, at));
      }
      assertEquals(RECORD, new RecordQuestion("ucx", 2000).ask(at));
    }
  }

  @Test
  void anAnswerIsNeverLongerThanItsQuestion() throws IOException {
    DataNodeRecord wordy = new DataNodeRecord(1, false, "", 0, "\u00fc\"\\".repeat(2000));
    ByteBuffer answer = RecordWire.answer(wordy, 7);
    assertTrue(answer.remaining() <= RecordWire.question("ucx", 7).length);
    DataNodeRecord read = DataNodeRecord.decode(RecordWire.answer(answer, 7));
    assertFalse(read.served());
    assertTrue(read.reason().startsWith("\u00fc\"\\"), read.reason());
  }

  @Test
  void aShorterReasonLeavesTheRestAsItIs() throws IOException {
    DataNodeRecord wordy = new DataNodeRecord(4, true, "127.0.0.1", 4567, "x".repeat(900), true);
    DataNodeRecord read = DataNodeRecord.decode(RecordWire.answer(RecordWire.answer(wordy, 7), 7));
    assertTrue(read.secured() && read.served() && read.version() == 4, read::toString);
  }

  @Test
  void portsOfSplitConnectionsAreTold() throws IOException {
    DataNodeRecord.Split split = new DataNodeRecord.Split(4568, 4569);
    DataNodeRecord both = new DataNodeRecord(1, true, "", 4567, "x".repeat(900), false, split);
    DataNodeRecord read = DataNodeRecord.decode(RecordWire.answer(RecordWire.answer(both, 7), 7));
    assertEquals(split, read.split());
    assertNull(DataNodeRecord.decode(RECORD.encode()).split());
    for (int port : new int[] {0, -1, 65536}) {
      byte[] wrong =
          new DataNodeRecord(1, true, "", 1, "", false, new DataNodeRecord.Split(1, port)).encode();
      assertThrows(IOException.class, () -> DataNodeRecord.decode(wrong));
    }
  }

  @Test
  void answersToOthersAreLeftAlone() throws IOException {
    byte[] answer = RecordWire.answer(RECORD, 7).array();
    assertNull(RecordWire.answer(ByteBuffer.wrap(answer), 8));
    assertNull(RecordWire.answer(ByteBuffer.wrap(answer, 0, 5), 7));
    assertNull(RecordWire.answer(ByteBuffer.wrap(RecordWire.question("ucx", 7)), 7));
    assertArrayEquals(RECORD.encode(), RecordWire.answer(ByteBuffer.wrap(answer), 7));
    answer[4] = 2;
    assertThrows(IOException.class, () -> RecordWire.answer(ByteBuffer.wrap(answer), 7));
    assertNull(RecordWire.question(ByteBuffer.wrap(answer)).transport());
  }
}

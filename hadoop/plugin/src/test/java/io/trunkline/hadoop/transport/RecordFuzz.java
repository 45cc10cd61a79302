package io.trunkline.hadoop.transport;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.code_intelligence.jazzer.junit.FuzzTest;
import io.trunkline.hadoop.Fuzzing;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;

/** Any datagram as a question or as an answer, and anything as what an answer says. */
class RecordFuzz {
  @FuzzTest
  void question(byte[] bytes) {
    byte[] padded =
        bytes.length < RecordWire.BYTES ? Arrays.copyOf(bytes, RecordWire.BYTES) : bytes;
    RecordWire.Question question =
        Fuzzing.decode(padded.length, 8, () -> RecordWire.question(ByteBuffer.wrap(padded)));
    if (question.transport() != null) {
      assertTrue(question.transport().length() <= 32);
    }
  }

  @FuzzTest
  void answer(byte[] bytes) throws IOException {
    long nonce = bytes.length < 13 ? 0 : ByteBuffer.wrap(bytes).getLong(5);
    byte[] json =
        Fuzzing.decode(bytes.length, 8, () -> RecordWire.answer(ByteBuffer.wrap(bytes), nonce));
    if (json != null) {
      assertArrayEquals(Arrays.copyOfRange(bytes, 13, bytes.length), json);
    }
  }

  @FuzzTest
  void record(byte[] bytes) throws IOException {
    DataNodeRecord record = Fuzzing.decode(bytes.length, 128, () -> DataNodeRecord.decode(bytes));
    if (record == null) {
      return;
    }
    assertTrue(!record.served() || record.port() > 0 && record.port() < 65536);
    byte[] again = record.encode();
    // This reader takes bytes that are no UTF-8 for three others each; the library refuses them.
    if (again.length <= DataNodeRecord.MAX_BYTES) {
      assertEquals(record, DataNodeRecord.decode(again));
    }
    String address = record.address();
    // What java.net.InetAddress would look up in a name service.
    assertTrue(
        address.isEmpty() || address.contains(":") == isNotV4(address), () -> "address " + address);
    assertTrue(
        address.isEmpty()
            || address.charAt(0) == ':'
            || Character.digit(address.charAt(0), 16) >= 0,
        () -> "address " + address);
  }

  private static boolean isNotV4(String address) {
    String[] octets = address.split("\\.", -1);
    return octets.length != 4
        || !Arrays.stream(octets)
            .allMatch(octet -> octet.matches("\\d{1,3}") && Integer.parseInt(octet) < 256);
  }
}

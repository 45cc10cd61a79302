package io.trunkline.hadoop.ndn.secure;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.code_intelligence.jazzer.junit.FuzzTest;
import io.trunkline.hadoop.Fuzzing;
import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.library.NativeLibrary;
import io.trunkline.hadoop.ndn.wire.Welcome;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.BeforeAll;

/**
 * A secure connection whose bytes are changed, cut off, or made up on the way: what its reader
 * gives out is what was sealed, from the beginning on, and nothing else.
 */
class RecordFuzz {
  private static final byte[] PASSWORD = {1, 2, 3};
  private static final String ADDRESS = "192.0.2.1:9866";
  private static final byte[] IDENTIFIER = {4};

  /** What every connection costs: two sessions, and the reader's two buffers. */
  private static final int SESSION_BYTES = 8192;

  @BeforeAll
  static void load() throws IOException {
    NativeLibrary.load(Settings.from(new Configuration(false)).nativeLibrary());
  }

  /**
   * Two bytes: how the connection is cut, and how many records are sealed; two: where one byte is
   * changed, and one: which bits of it. What follows is what the records carry, and comes once more
   * behind them.
   */
  @FuzzTest
  void records(byte[] bytes) throws IOException {
    if (bytes.length < 5) {
      return;
    }
    byte[] carried = Arrays.copyOfRange(bytes, 5, bytes.length);
    Fuzzing.decode(SESSION_BYTES + bytes.length, 16, () -> connection(bytes, carried));
  }

  private static Object connection(byte[] bytes, byte[] carried) throws IOException {
    Welcome welcome = Welcome.draw();
    try (SecureSession client = SecureSession.client(welcome, PASSWORD, IDENTIFIER, ADDRESS);
        SecureSession server = SecureSession.server(welcome, PASSWORD, IDENTIFIER, ADDRESS)) {
      server.hear(client.say());
      client.hear(server.say());
      int count = bytes[1] & 7;
      ByteBuffer wire = ByteBuffer.allocate(count * (18 + carried.length) + carried.length);
      for (int i = 0; i < count; i++) {
        client.seal(carried, 0, carried.length, wire);
      }
      int sealed = wire.position();
      int changed = (bytes[2] & 0xFF) << 8 | bytes[3] & 0xFF;
      if (sealed > 0) {
        wire.array()[changed % sealed] ^= bytes[4];
      }
      wire.put(carried).flip();
      read(new RecordReader(server), wire, 1 + (bytes[0] & 0xFF), carried, count);
      return null;
    }
  }

  private static void read(
      RecordReader reader, ByteBuffer wire, int piece, byte[] carried, int count)
      throws IOException {
    byte[] got = new byte[carried.length];
    int total = 0;
    while (wire.hasRemaining()) {
      ByteBuffer room = reader.room();
      int length = Math.min(Math.min(piece, room.remaining()), wire.remaining());
      assertTrue(length > 0, "a reader that is not ready has room");
      room.put(wire.slice(wire.position(), length));
      wire.position(wire.position() + length);
      reader.came();
      while (reader.ready()) {
        int taken = reader.take(got, 0, got.length);
        assertTrue(taken > 0);
        for (int i = 0; i < taken; i++, total++) {
          assertTrue(total < carried.length * count && got[i] == carried[total % carried.length]);
        }
      }
    }
  }
}

package io.trunkline.hadoop.ucx;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.code_intelligence.jazzer.junit.FuzzTest;
import io.trunkline.hadoop.Fuzzing;
import java.nio.ByteBuffer;
import java.util.Arrays;

/** Anything as the header of a message, or as what two sides tell each other first. */
class FrameFuzz {
  @FuzzTest
  void frame(byte[] bytes) {
    byte[] whole = Arrays.copyOf(bytes, Frame.BYTES);
    Frame frame = Fuzzing.decode(whole.length, 8, () -> Frame.read(ByteBuffer.wrap(whole)));
    if (frame != null) {
      ByteBuffer again = ByteBuffer.allocate(Frame.BYTES);
      Frame.put(
          again,
          0,
          frame.type(),
          frame.detail(),
          frame.stream(),
          frame.token(),
          frame.sequence(),
          frame.length());
      assertEquals(frame, Frame.read(again));
    }
  }

  @FuzzTest
  void greeting(byte[] bytes) {
    byte[] whole = Arrays.copyOf(bytes, Greeting.BYTES);
    Greeting greeting =
        Fuzzing.decode(whole.length, 8, () -> Greeting.read(ByteBuffer.wrap(whole)));
    if (greeting != null) {
      assertTrue(
          greeting.token() != 0 && greeting.windowBytes() > 0 && greeting.messageBytes() > 0);
      ByteBuffer again = ByteBuffer.allocate(Greeting.BYTES);
      greeting.put(again, 0);
      assertEquals(greeting, Greeting.read(again));
    }
  }
}

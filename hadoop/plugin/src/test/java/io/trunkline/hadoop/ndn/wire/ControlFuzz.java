package io.trunkline.hadoop.ndn.wire;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.code_intelligence.jazzer.junit.FuzzTest;
import io.trunkline.hadoop.Fuzzing;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/** Anything on the control connection of a named write, from either end. */
class ControlFuzz {
  private static final int FACTOR = 16;

  private interface Reader {
    Object read(ByteBuffer in) throws IOException;
  }

  /**
   * Has a message read out of what comes.
   *
   * @return how many bytes it has; 0 when it is none, or not whole
   */
  private static int read(byte[] bytes, Reader reader) {
    ByteBuffer in = ByteBuffer.wrap(bytes);
    Object read = Fuzzing.decode(bytes.length, FACTOR, () -> reader.read(in.rewind()));
    assertEquals(read != null, in.position() > 0, "only what is whole is taken");
    for (int part = 0; part < in.position(); part++) {
      int length = part;
      assertNull(
          Fuzzing.decode(part, FACTOR, () -> reader.read(ByteBuffer.wrap(bytes, 0, length))),
          "taken before it is whole");
    }
    return in.position();
  }

  @FuzzTest
  void preamble(byte[] bytes) throws IOException {
    int length = read(bytes, Preamble::decode);
    if (length > 0) {
      Preamble preamble = Preamble.decode(ByteBuffer.wrap(bytes));
      assertArrayEquals(Arrays.copyOf(bytes, length), preamble.encode());
      assertTrue(preamble.name().length() <= Preamble.MAX_NAME_BYTES);
      assertTrue(preamble.name().chars().allMatch(c -> c > ' ' && c <= '~'), preamble::name);
    }
  }

  @FuzzTest
  void welcome(byte[] bytes) throws IOException {
    byte[] whole = Arrays.copyOf(bytes, Welcome.BYTES);
    Welcome welcome = Fuzzing.decode(whole.length, FACTOR, () -> Welcome.decode(whole));
    if (welcome != null) {
      assertEquals(ByteBuffer.wrap(whole), welcome.encode());
    }
  }

  @FuzzTest
  void hello(byte[] bytes) throws IOException {
    int length = read(bytes, SecureHello::decode);
    if (length > 0) {
      ByteBuffer in = ByteBuffer.wrap(bytes);
      assertEquals(SecureHello.Kind.SECURE, SecureHello.look(in));
      assertArrayEquals(Arrays.copyOf(bytes, length), SecureHello.decode(in).encode());
    }
  }

  @FuzzTest
  void record(byte[] bytes) throws IOException {
    int length = read(bytes, ControlRecord::decode);
    if (length > 0) {
      ByteBuffer again = ByteBuffer.allocate(ControlRecord.MAX_BYTES);
      ControlRecord.decode(ByteBuffer.wrap(bytes)).encode(again);
      assertEquals(ByteBuffer.wrap(bytes, 0, length), again.flip());
    }
  }

  private record Answers(List<Byte> stock, List<Long> asked, boolean sound) {}

  /** The first byte says how answers are cut, which changes nothing. */
  @FuzzTest
  void answers(byte[] bytes) {
    if (bytes.length == 0) {
      return;
    }
    byte[] rest = Arrays.copyOfRange(bytes, 1, bytes.length);
    Answers cut = Fuzzing.decode(rest.length, 96, () -> answers(rest, 1 + (bytes[0] & 0xFF)));
    Answers whole = answers(rest, Integer.MAX_VALUE);
    assertEquals(whole.asked, cut.asked);
    assertEquals(whole.sound, cut.sound);
    if (whole.sound) {
      assertEquals(whole.stock, cut.stock);
    }
  }

  private static Answers answers(byte[] bytes, int piece) {
    AnswerFrame.Reader reader = new AnswerFrame.Reader();
    List<Byte> stock = new ArrayList<>();
    List<Long> asked = new ArrayList<>();
    ByteBuffer in = ByteBuffer.wrap(bytes.clone());
    try {
      for (int at = 0; at < bytes.length; ) {
        int end = at + Math.min(piece, bytes.length - at);
        int count = reader.accept(in, at, end, asked::add);
        assertTrue(count >= 0 && count <= end - at);
        for (int i = at; i < at + count; i++) {
          stock.add(in.get(i));
        }
        at = end;
      }
    } catch (IOException e) {
      return new Answers(stock, asked, false);
    }
    return new Answers(stock, asked, true);
  }

  /** The last four bytes say how long the body is that came with the header. */
  @FuzzTest
  void segment(byte[] bytes) {
    byte[] whole = Arrays.copyOf(bytes, SegmentHeader.BYTES + Integer.BYTES);
    int body = ByteBuffer.wrap(whole).getInt(SegmentHeader.BYTES) & 0x1FFFF;
    SegmentHeader header =
        Fuzzing.decode(whole.length, FACTOR, () -> SegmentHeader.decode(whole, body));
    if (header != null) {
      assertEquals(body, header.checksumBytes() + header.dataLength());
      byte[] again = new byte[SegmentHeader.BYTES];
      header.encode(again);
      assertArrayEquals(Arrays.copyOf(whole, SegmentHeader.BYTES), again);
    }
  }
}

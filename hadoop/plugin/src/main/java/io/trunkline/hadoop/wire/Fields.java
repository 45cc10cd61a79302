package io.trunkline.hadoop.wire;

import java.io.IOException;
import java.util.Arrays;

/**
 * The fields of one message in Protocol Buffers' encoding, one after the other, for messages of
 * which one is read for each packet: in a short command their own classes would take longer to be
 * compiled than to run.
 */
final class Fields {
  // How a field is encoded: the lowest three bits of its tag, whose others are its number.
  static final int VARIABLE = 0;
  static final int FIXED_64 = 1;
  static final int BYTES = 2;
  static final int FIXED_32 = 5;

  private final byte[] bytes;
  private final int end;
  private int at;

  /**
   * A message.
   *
   * @param bytes array that holds it
   * @param start where it begins
   * @param end where it ends
   */
  Fields(byte[] bytes, int start, int end) {
    this.bytes = bytes;
    this.at = start;
    this.end = end;
  }

  /** Whether another field follows. */
  boolean more() {
    return at < end;
  }

  /** Reads a tag, or a number of as many bytes as it takes. */
  long variable() throws IOException {
    long value = 0;
    for (int shift = 0; shift < Long.SIZE; shift += 7) {
      int next = bytes[take(1)];
      value |= (long) (next & 0x7F) << shift;
      if (next >= 0) {
        return value;
      }
    }
    throw new IOException("message with a number without end");
  }

  /** Reads a number of so many bytes, the lowest first. */
  long fixed(int count) throws IOException {
    int from = take(count);
    long value = 0;
    for (int i = count - 1; i >= 0; i--) {
      value = value << Byte.SIZE | bytes[from + i] & 0xFF;
    }
    return value;
  }

  private int length() throws IOException {
    long length = variable();
    if (length < 0 || length > end - at) {
      throw new IOException("message with a field of " + length + " bytes");
    }
    return (int) length;
  }

  /** Reads a field of bytes as a message of its own. */
  Fields inner() throws IOException {
    int length = length();
    int from = take(length);
    return new Fields(bytes, from, from + length);
  }

  /** Reads a field of bytes. */
  byte[] bytes() throws IOException {
    int length = length();
    int from = take(length);
    return Arrays.copyOfRange(bytes, from, from + length);
  }

  /** Passes over a field that does not matter here. */
  void skip(int tag) throws IOException {
    if (tag >>> 3 == 0) {
      throw new IOException("message with a field of no number");
    }
    switch (tag & 7) {
      case VARIABLE -> variable();
      case FIXED_64 -> take(Long.BYTES);
      case BYTES -> take(length());
      case FIXED_32 -> take(Integer.BYTES);
      default -> throw new IOException("message with an unknown encoding");
    }
  }

  private int take(int count) throws IOException {
    if (count > end - at) {
      throw new IOException("message is cut off");
    }
    int from = at;
    at += count;
    return from;
  }
}

package io.trunkline.hadoop.util;

/**
 * Numbers in arrays, highest byte first, for what is read or written with each packet. A short
 * command runs that code a few thousand times, and what a {@link java.nio.ByteBuffer} calls for one
 * number takes longer to be compiled than all of them to be read.
 */
public final class BigEndian {
  private BigEndian() {}

  /**
   * Reads two bytes.
   *
   * @param from array
   * @param at where in it
   * @return the number, without sign
   */
  public static int getShort(byte[] from, int at) {
    return (from[at] & 0xFF) << 8 | from[at + 1] & 0xFF;
  }

  /**
   * Reads four bytes.
   *
   * @param from array
   * @param at where in it
   * @return the number
   */
  public static int getInt(byte[] from, int at) {
    return getShort(from, at) << 16 | getShort(from, at + 2);
  }

  /**
   * Reads eight bytes.
   *
   * @param from array
   * @param at where in it
   * @return the number
   */
  public static long getLong(byte[] from, int at) {
    return (long) getInt(from, at) << 32 | getInt(from, at + 4) & 0xFFFFFFFFL;
  }

  /**
   * Writes two bytes.
   *
   * @param to array
   * @param at where in it
   * @param value the number, of which the lowest two bytes are taken
   */
  public static void putShort(byte[] to, int at, int value) {
    to[at] = (byte) (value >> 8);
    to[at + 1] = (byte) value;
  }

  /**
   * Writes four bytes.
   *
   * @param to array
   * @param at where in it
   * @param value the number
   */
  public static void putInt(byte[] to, int at, int value) {
    putShort(to, at, value >> 16);
    putShort(to, at + 2, value);
  }

  /**
   * Writes eight bytes.
   *
   * @param to array
   * @param at where in it
   * @param value the number
   */
  public static void putLong(byte[] to, int at, long value) {
    putInt(to, at, (int) (value >> 32));
    putInt(to, at + 4, (int) value);
  }
}

package io.trunkline.hadoop.ndn.wire;

import java.util.Arrays;

/** The key that the segments of one write are sealed with. It stands in no text. */
public final class WriteKey {
  /** Its length in bytes. */
  public static final int BYTES = 16;

  private final byte[] bytes;

  /**
   * A key.
   *
   * @param bytes its bytes, kept
   */
  public WriteKey(byte[] bytes) {
    if (bytes.length != BYTES) {
      throw new IllegalArgumentException("key of " + bytes.length + " bytes");
    }
    this.bytes = bytes;
  }

  /**
   * For the native library, and for the secure connection.
   *
   * @return its bytes, not a copy; zeros once it has been wiped
   */
  public byte[] bytes() {
    return bytes;
  }

  /** Its write is over: nothing opens by it any more. */
  public void wipe() {
    Arrays.fill(bytes, (byte) 0);
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof WriteKey that && Arrays.equals(bytes, that.bytes);
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(bytes);
  }

  @Override
  public String toString() {
    return "WriteKey";
  }
}

package io.trunkline.hadoop;

import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;

/**
 * What every decoder is held to, whatever comes: it throws nothing but an {@link IOException}, and
 * takes no more memory than a small multiple of what came.
 */
public final class Fuzzing {
  /** What a decoder may take whatever comes: buffers of its own, and the text of an error. */
  private static final long FIXED_BYTES = 96 << 10;

  /** The first time classes are loaded and tables are built; what stays is the decoder's. */
  private static final int TRIES = 6;

  private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

  private Fuzzing() {}

  /**
   * Decodes.
   *
   * @param <T> what is made of the bytes
   */
  @FunctionalInterface
  public interface Decoder<T> {
    /**
     * Decodes the same bytes, as often as it is called.
     *
     * @return what they say
     * @throws IOException when they say nothing
     */
    T decode() throws IOException;
  }

  /**
   * Has something decoded within its bounds.
   *
   * @param <T> what is made of the bytes
   * @param came how many bytes came
   * @param factor most bytes of memory for each of them
   * @param decoder decodes them
   * @return what it returned, null when it refused them
   */
  public static <T> T decode(int came, int factor, Decoder<T> decoder) {
    long most = FIXED_BYTES + (long) factor * came;
    long least = Long.MAX_VALUE;
    for (int i = 0; i < TRIES; i++) {
      long before = THREADS.getCurrentThreadAllocatedBytes();
      T decoded;
      try {
        decoded = decoder.decode();
      } catch (IOException e) {
        decoded = null;
      }
      least = Math.min(least, THREADS.getCurrentThreadAllocatedBytes() - before);
      if (least <= most) {
        return decoded;
      }
    }
    throw new AssertionError(least + " bytes of memory for " + came + " that came");
  }
}

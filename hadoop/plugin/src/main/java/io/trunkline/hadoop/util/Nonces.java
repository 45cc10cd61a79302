package io.trunkline.hadoop.util;

import java.security.SecureRandom;

/** Numbers that nobody else can guess, or will draw as well. */
public final class Nonces {
  private static final SecureRandom RANDOM = new SecureRandom();

  private Nonces() {}

  /**
   * Draws a number. Any thread.
   *
   * @return never 0
   */
  public static long next() {
    long nonce;
    do {
      nonce = RANDOM.nextLong();
    } while (nonce == 0);
    return nonce;
  }
}

package io.trunkline.hadoop.ucx;

/**
 * What a message costs of a stream's window. Small ones cost a page, so that a window bounds their
 * number as well as their bytes. Both sides must reckon alike.
 */
final class WindowCost {
  /** Least that a message costs. */
  static final int LEAST = 4096;

  private WindowCost() {}

  /** Cost of a message. */
  static int of(int bytes) {
    return Math.max(bytes, LEAST);
  }
}

package io.trunkline.hadoop.tap;

/**
 * Lets all that follows pass as it is, unseen, and is told no more than that the op header has gone
 * out and that the connection ended.
 */
public non-sealed interface PassThrough extends WriteHandler {
  /** Needs not even that. */
  PassThrough INSTANCE = new PassThrough() {};

  /**
   * The op header has left. Called once, by whoever writes, and never where the connection ends
   * before.
   */
  default void headerSent() {}
}

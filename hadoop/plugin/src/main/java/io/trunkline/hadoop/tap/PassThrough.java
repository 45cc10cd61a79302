package io.trunkline.hadoop.tap;

/** Lets all that follows pass as it is, and is told nothing. */
public enum PassThrough implements WriteHandler {
  /** The only one. */
  INSTANCE
}

package io.trunkline.hadoop.ucx;

/** How a stream has served whoever used it. */
public enum Service {
  /** What was read came as it should. */
  CARRIED,
  /** The connection failed under it, or the peer broke the rules. */
  LOST,
  /** Nothing came in the time that the reader had. */
  SILENT,
  /** Nothing was read, or the peer gave it up in order. */
  UNKNOWN
}

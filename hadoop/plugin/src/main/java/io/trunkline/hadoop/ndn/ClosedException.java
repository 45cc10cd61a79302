package io.trunkline.hadoop.ndn;

/** What was called upon is closed, or was never open. */
public final class ClosedException extends NdnException {
  private static final long serialVersionUID = 1L;

  /**
   * Made by the native library.
   *
   * @param message names the thing, the cause and the way out
   */
  public ClosedException(String message) {
    super(message);
  }
}

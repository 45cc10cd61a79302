package io.trunkline.hadoop.ndn;

/**
 * What came under a name did not verify however often it was asked for: it is damaged where it
 * lies, or of another write.
 */
public final class UnverifiedException extends NdnException {
  private static final long serialVersionUID = 1L;

  /**
   * Made by the native library.
   *
   * @param message names the thing, the cause and the way out
   */
  public UnverifiedException(String message) {
    super(message);
  }
}

package io.trunkline.hadoop.ndn;

import java.io.IOException;

/**
 * A failure of the named-data plane: what was asked, why it failed, and the way out. Those that are
 * to be told apart are classes of their own.
 */
public class NdnException extends IOException {
  private static final long serialVersionUID = 1L;

  /**
   * Made by the native library and by the classes around it.
   *
   * @param message names the thing, the cause and the way out
   */
  public NdnException(String message) {
    super(message);
  }

  /**
   * Made where another failure lies below.
   *
   * @param message names the thing, the cause and the way out
   * @param cause the failure below
   */
  public NdnException(String message, Throwable cause) {
    super(message, cause);
  }
}

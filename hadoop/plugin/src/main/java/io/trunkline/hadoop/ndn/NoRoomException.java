package io.trunkline.hadoop.ndn;

/** There is no room for more within a bound of this process. */
public final class NoRoomException extends NdnException {
  private static final long serialVersionUID = 1L;

  /**
   * Made by the native library.
   *
   * @param message names the thing, the cause and the way out
   */
  public NoRoomException(String message) {
    super(message);
  }
}

package io.trunkline.hadoop.conf;

/** A setting is wrong; the message names it, its value and the fix. */
public final class SettingsException extends IllegalArgumentException {
  private static final long serialVersionUID = 1L;

  /**
   * Made by {@link Settings} and the checks beside it.
   *
   * @param message names the setting, what is wrong and the fix
   */
  public SettingsException(String message) {
    super(message);
  }
}

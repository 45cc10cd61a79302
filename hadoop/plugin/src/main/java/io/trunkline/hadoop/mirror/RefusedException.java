package io.trunkline.hadoop.mirror;

/** The controller does not take what it was told. */
final class RefusedException extends Exception {
  private static final long serialVersionUID = 1L;

  private final String why;
  private final boolean always;

  /**
   * A refusal. It is part of ordinary work, so that it carries no stack trace.
   *
   * @param why in a word, for a counter
   * @param always whether others would be refused alike
   * @param what the same for people, with the way out
   */
  RefusedException(String why, boolean always, String what) {
    super(what, null, false, false);
    this.why = why;
    this.always = always;
  }

  /** In a word. */
  String why() {
    return why;
  }

  /** Whether whatever else is reported would be refused alike: a token is wrong, or a URL. */
  boolean always() {
    return always;
  }
}

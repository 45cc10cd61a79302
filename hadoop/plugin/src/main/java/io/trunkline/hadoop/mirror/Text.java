package io.trunkline.hadoop.mirror;

/** What a server says, in a form that can be logged and counted whatever it says. */
final class Text {
  private static final int MAX_CHARS = 300;
  private static final String WORD = "[a-z][a-z0-9_]{0,39}";

  private Text() {}

  /** One line of it, cut off where it is long; empty for null. */
  static String printable(String said) {
    if (said == null) {
      return "";
    }
    String line = said.replaceAll("[^\\x20-\\x7E]+", " ");
    return line.length() <= MAX_CHARS ? line : line.substring(0, MAX_CHARS) + "...";
  }

  /** It, where it is a word that names a counter; otherwise empty. */
  static String word(String said) {
    return said != null && said.matches(WORD) && !said.equals("null") ? said : "";
  }
}

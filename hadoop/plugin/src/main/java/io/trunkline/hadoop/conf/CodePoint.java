package io.trunkline.hadoop.conf;

import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A differentiated services code point (RFC 2474), by its number or by its name: CS0 to CS7, AF11
 * to AF43 (RFC 2597), EF (RFC 3246), VOICE-ADMIT (RFC 5865), LE (RFC 8622).
 */
final class CodePoint {
  static final String RANGE = "0 .. 63, or a name: CS0 .. CS7, AF11 .. AF43, EF, VOICE-ADMIT, LE";

  private static final int MAX = 63;
  private static final Pattern NUMBER = Pattern.compile("[0-9]{1,2}");
  private static final Pattern CLASS_SELECTOR = Pattern.compile("CS([0-7])");
  private static final Pattern ASSURED = Pattern.compile("AF([1-4])([1-3])");

  private CodePoint() {}

  /**
   * Reads one.
   *
   * @param setting whose value it is
   * @param value the value
   * @return the code point, 0 to 63
   * @throws SettingsException when it is none
   */
  static int parse(Setting setting, String value) {
    String name = value.toUpperCase(Locale.ROOT);
    Matcher selector = CLASS_SELECTOR.matcher(name);
    if (selector.matches()) {
      return 8 * Integer.parseInt(selector.group(1));
    }
    Matcher assured = ASSURED.matcher(name);
    if (assured.matches()) {
      return 8 * Integer.parseInt(assured.group(1)) + 2 * Integer.parseInt(assured.group(2));
    }
    int point =
        switch (name) {
          case "EF" -> 46;
          case "VOICE-ADMIT" -> 44;
          case "LE" -> 1;
          default -> NUMBER.matcher(name).matches() ? Integer.parseInt(name) : -1;
        };
    if (point < 0 || point > MAX) {
      throw setting.wrong(value, "no code point", "use " + RANGE);
    }
    return point;
  }
}

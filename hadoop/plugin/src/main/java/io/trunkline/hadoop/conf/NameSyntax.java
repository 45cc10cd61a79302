package io.trunkline.hadoop.conf;

import java.util.regex.Pattern;

/** Checks that a setting is the URI of an NDN name. */
final class NameSyntax {
  private static final Pattern COMPONENT = Pattern.compile("([A-Za-z0-9._~-]|%[0-9A-Fa-f]{2}|=)+");
  private static final Pattern PERIODS = Pattern.compile("\\.{1,2}");

  private NameSyntax() {}

  /** Returns the name without a slash at its end. */
  static String checkRoot(String key, String value) {
    String name = value.startsWith("ndn:") ? value.substring(4) : value;
    if (!name.startsWith("/") || name.equals("/")) {
      throw wrong(key, value, "does not begin with / and a component");
    }
    if (name.endsWith("/")) {
      name = name.substring(0, name.length() - 1);
    }
    for (String component : name.substring(1).split("/", -1)) {
      if (component.isEmpty()) {
        throw wrong(key, value, "has an empty component");
      }
      if (!COMPONENT.matcher(component).matches() || PERIODS.matcher(component).matches()) {
        throw wrong(key, value, "component \"" + component + "\" is none of a name");
      }
    }
    return name;
  }

  private static SettingsException wrong(String key, String value, String cause) {
    return new SettingsException(
        "setting "
            + key
            + " = \""
            + value
            + "\": not an NDN name, "
            + cause
            + "; write it as /hadoop or /org/example/hadoop, other bytes as %XX");
  }
}

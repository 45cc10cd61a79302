package io.trunkline.hadoop.conf;

/** Finds the setting that a mistyped key was most likely meant to be. */
final class Nearest {
  private Nearest() {}

  static Setting to(String key) {
    Setting nearest = null;
    int least = Integer.MAX_VALUE;
    for (Setting setting : Setting.values()) {
      int distance = distance(key, setting.key());
      if (distance < least) {
        least = distance;
        nearest = setting;
      }
    }
    return nearest;
  }

  /** Levenshtein's distance: insertions, deletions and replacements from one to the other. */
  static int distance(String a, String b) {
    int[] above = new int[b.length() + 1];
    for (int j = 0; j <= b.length(); j++) {
      above[j] = j;
    }
    for (int i = 1; i <= a.length(); i++) {
      int[] row = new int[b.length() + 1];
      row[0] = i;
      for (int j = 1; j <= b.length(); j++) {
        int replace = above[j - 1] + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
        row[j] = Math.min(replace, 1 + Math.min(above[j], row[j - 1]));
      }
      above = row;
    }
    return above[b.length()];
  }
}

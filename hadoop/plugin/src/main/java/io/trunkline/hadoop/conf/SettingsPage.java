package io.trunkline.hadoop.conf;

/** Prints the table of all settings in Markdown, for the operators' page. */
public final class SettingsPage {
  private SettingsPage() {}

  /**
   * The table.
   *
   * @return Markdown
   */
  public static String markdown() {
    StringBuilder page = new StringBuilder();
    page.append("| setting | default | range | what it does |\n|---|---|---|---|\n");
    for (Setting setting : Setting.values()) {
      page.append("| `")
          .append(setting.key())
          .append("` | ")
          .append(setting.defaultValue().isEmpty() ? "(empty)" : setting.defaultValue())
          .append(" | ")
          .append(setting.range())
          .append(" | ")
          .append(setting.help())
          .append(" |\n");
    }
    return page.toString();
  }

  /**
   * Prints the table on standard output.
   *
   * @param args none
   */
  public static void main(String[] args) {
    System.out.print(markdown());
  }
}

package io.trunkline.hadoop.conf;

import java.util.List;

/**
 * Writes a small JSON object (RFC 8259). The library that reads JSON could write it too; loading it
 * for that would cost each short command 30 ms of processor time.
 */
public final class JsonText {
  private final StringBuilder out = new StringBuilder("{");

  /**
   * Ends the object.
   *
   * @return JSON
   */
  public String end() {
    return out.append('}').toString();
  }

  /**
   * Writes a string.
   *
   * @param name the field's name
   * @param value its value
   */
  public void text(String name, String value) {
    name(name);
    quoted(value);
  }

  /**
   * Writes a number.
   *
   * @param name the field's name
   * @param value its value
   */
  public void number(String name, long value) {
    name(name);
    out.append(value);
  }

  /**
   * Writes true or false.
   *
   * @param name the field's name
   * @param value its value
   */
  public void flag(String name, boolean value) {
    name(name);
    out.append(value);
  }

  /**
   * Begins an object within: what follows are its fields, until {@link #close}.
   *
   * @param name the field's name
   */
  public void open(String name) {
    name(name);
    out.append('{');
  }

  /** Ends the object within that was begun last. */
  public void close() {
    out.append('}');
  }

  /**
   * Writes a list of strings.
   *
   * @param name the field's name
   * @param values its values
   */
  public void texts(String name, List<String> values) {
    name(name);
    out.append('[');
    for (String value : values) {
      separate('[');
      quoted(value);
    }
    out.append(']');
  }

  /**
   * Writes a list of objects.
   *
   * @param name the field's name
   * @param objects each in JSON already
   */
  public void objects(String name, List<String> objects) {
    name(name);
    out.append('[').append(String.join(",", objects)).append(']');
  }

  private void name(String name) {
    separate('{');
    quoted(name);
    out.append(':');
  }

  /** A comma, but for what comes first. */
  private void separate(char opened) {
    if (out.charAt(out.length() - 1) != opened) {
      out.append(',');
    }
  }

  private void quoted(String text) {
    out.append('"');
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      if (c == '"' || c == '\\') {
        out.append('\\').append(c);
      } else if (i + 1 < text.length() && Character.isSurrogatePair(c, text.charAt(i + 1))) {
        out.append(c).append(text.charAt(++i));
      } else if (c < ' ' || Character.isSurrogate(c)) {
        escaped(c);
      } else {
        out.append(c);
      }
    }
    out.append('"');
  }

  /** As four hexadecimal digits: half a pair of surrogates can't be written in UTF-8. */
  private void escaped(char c) {
    out.append("\\u");
    for (int shift = 12; shift >= 0; shift -= 4) {
      out.append(Character.forDigit(c >> shift & 0xF, 16));
    }
  }
}

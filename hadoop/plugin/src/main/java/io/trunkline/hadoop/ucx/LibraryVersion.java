package io.trunkline.hadoop.ucx;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Version of a libucp, read from its file, so that a library that does not fit is never loaded.
 * UCX's file names all end in {@code .so.0.0.0}; the version stands in the library as the text that
 * {@code ucp_get_version_string} returns.
 *
 * @param major first number
 * @param minor second number
 * @param release third number
 */
record LibraryVersion(int major, int minor, int release) {
  /** Oldest that the bundled jucx was run on. */
  static final LibraryVersion OLDEST = new LibraryVersion(1, 13, 0);

  private static final int LARGEST_FILE = 64 << 20;

  private static final Pattern TEXT = Pattern.compile("(\\d{1,3})\\.(\\d{1,3})\\.(\\d{1,3})");

  /** One more than the pattern takes, so that a longer run of figures does not match by its end. */
  private static final int LONGEST = 12;

  private static final String MARK = "ucp_get_version_string";

  /**
   * Reads the version of a library.
   *
   * @param library a libucp.so.0
   * @return its version, or null when the file does not tell one
   * @throws IOException when the file cannot be read
   */
  static LibraryVersion of(Path library) throws IOException {
    if (Files.size(library) > LARGEST_FILE) {
      return null;
    }
    byte[] bytes = Files.readAllBytes(library);
    String text = new String(bytes, StandardCharsets.ISO_8859_1);
    if (!text.startsWith("\u007fELF") || !text.contains(MARK)) {
      return null;
    }
    LibraryVersion found = null;
    // From dot to dot, since a search for them does not go byte by byte in an interpreter.
    for (int dot = text.indexOf('.'); dot >= 0; dot = text.indexOf('.', dot + 1)) {
      int end = dot + 1;
      while (end < bytes.length && end - dot < LONGEST && isDigit(bytes[end])) {
        end++;
      }
      if (end == dot + 1 || end == bytes.length || bytes[end] != 0) {
        continue;
      }
      int begin = dot;
      while (begin > 0 && end - begin < LONGEST && isNumeric(bytes[begin - 1])) {
        begin--;
      }
      Matcher matcher = TEXT.matcher(text.substring(begin, end));
      // What follows an underscore is the end of a symbol's version, as GLIBC_2.2.5.
      if (!matcher.matches() || begin > 0 && bytes[begin - 1] == '_') {
        continue;
      }
      LibraryVersion version =
          new LibraryVersion(
              Integer.parseInt(matcher.group(1)),
              Integer.parseInt(matcher.group(2)),
              Integer.parseInt(matcher.group(3)));
      if (found != null && !found.equals(version)) {
        return null;
      }
      found = version;
    }
    return found;
  }

  private static boolean isDigit(byte b) {
    return b >= '0' && b <= '9';
  }

  private static boolean isNumeric(byte b) {
    return isDigit(b) || b == '.';
  }

  /** Whether the bundled jucx works on it: UCX keeps its ABI within a major version. */
  boolean accepted() {
    return major == OLDEST.major && minor >= OLDEST.minor;
  }

  @Override
  public String toString() {
    return major + "." + minor + "." + release;
  }
}

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

  /** The text of three numbers, but not the end of a symbol version as GLIBC_2.2.5. */
  private static final Pattern TEXT =
      Pattern.compile("(?<![0-9._])(\\d{1,3})\\.(\\d{1,3})\\.(\\d{1,3})\\x00");

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
    String bytes = new String(Files.readAllBytes(library), StandardCharsets.ISO_8859_1);
    if (!bytes.startsWith("\u007fELF") || !bytes.contains(MARK)) {
      return null;
    }
    LibraryVersion found = null;
    Matcher matcher = TEXT.matcher(bytes);
    while (matcher.find()) {
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

  /** Whether the bundled jucx works on it: UCX keeps its ABI within a major version. */
  boolean accepted() {
    return major == OLDEST.major && minor >= OLDEST.minor;
  }

  @Override
  public String toString() {
    return major + "." + minor + "." + release;
  }
}

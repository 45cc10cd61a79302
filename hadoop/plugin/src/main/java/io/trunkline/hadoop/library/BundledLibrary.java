package io.trunkline.hadoop.library;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/** Native libraries that the jar carries. */
public final class BundledLibrary {
  private BundledLibrary() {}

  /**
   * Loads one; its file is gone again when this returns.
   *
   * @param owner a class of the jar
   * @param resource path in the jar, from its root: {@code /native/linux-x86_64/libx.so}
   * @throws IOException when it is not in the jar, or can't be written to the temporary directory
   * @throws UnsatisfiedLinkError when the loader does not take it
   */
  public static void load(Class<?> owner, String resource) throws IOException {
    try (InputStream in = owner.getResourceAsStream(resource)) {
      if (in == null) {
        throw new IOException(resource + " is not in the jar");
      }
      Path file = Files.createTempFile("trunkline", ".so");
      try {
        Files.copy(in, file, StandardCopyOption.REPLACE_EXISTING);
        System.load(file.toString());
      } finally {
        Files.deleteIfExists(file);
      }
    }
  }
}

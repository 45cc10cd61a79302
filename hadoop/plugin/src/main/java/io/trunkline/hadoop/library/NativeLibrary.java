package io.trunkline.hadoop.library;

import io.trunkline.hadoop.conf.Setting;
import java.io.IOException;

/** Loads the native library once a JVM: out of the jar, or from the path that a setting names. */
public final class NativeLibrary {
  private static final String RESOURCE = "/native/linux-x86_64/libtrunkline_native.so";

  private static boolean loaded;
  private static IOException failure;

  private NativeLibrary() {}

  /**
   * Loads the library unless it is loaded.
   *
   * @param path the library's file, or empty for the one in the jar
   * @throws IOException when it cannot be loaded; the same failure is thrown again later
   */
  public static synchronized void load(String path) throws IOException {
    if (loaded) {
      return;
    }
    if (failure != null) {
      throw new IOException(failure.getMessage(), failure);
    }
    try {
      if (path.isEmpty()) {
        BundledLibrary.load(NativeLibrary.class, RESOURCE);
      } else {
        System.load(path);
      }
      loaded = true;
    } catch (IOException | UnsatisfiedLinkError | SecurityException e) {
      failure =
          new IOException(
              "native library "
                  + (path.isEmpty() ? "in the jar" : path)
                  + ": "
                  + e.getMessage()
                  + "; name one for this machine with "
                  + Setting.NATIVE_LIBRARY.key(),
              e);
      throw failure;
    }
  }
}

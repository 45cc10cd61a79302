package io.trunkline.hadoop.ucx;

import io.trunkline.hadoop.library.BundledLibrary;
import java.io.IOException;

/**
 * Keeps UCX from taking the JVM's signals. From its loading until jucx sends them back, a
 * millisecond or more, any SIGSEGV would end the process, and compiled Java code uses that to find
 * null and to stop for the collector.
 */
final class UcxSignals {
  private UcxSignals() {}

  /**
   * Must be called before anything of UCX is loaded.
   *
   * @throws IOException when the library that does it is not in the jar or can't be unpacked
   * @throws UnsatisfiedLinkError when the loader does not take it
   */
  static void leaveAlone() throws IOException {
    BundledLibrary.load(UcxSignals.class, "/native/linux-x86_64/libtrunkline_ucx.so");
    if (!keepOff()) {
      throw new IOException("the environment takes nothing more");
    }
  }

  private static native boolean keepOff();
}

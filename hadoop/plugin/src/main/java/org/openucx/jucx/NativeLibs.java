package org.openucx.jucx;

/**
 * In place of jucx's own class, which looks for five libraries on the whole class path (hundreds of
 * jars under Hadoop) and leaves files behind. {@link io.trunkline.hadoop.ucx.UcxLibrary} loads the
 * libraries, before any class of jucx is used.
 */
public final class NativeLibs {
  private NativeLibs() {}

  /** Called by each of jucx's classes. */
  public static void load() {
    // Loaded already.
  }
}

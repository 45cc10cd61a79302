package io.trunkline.hadoop.ucx;

import io.trunkline.hadoop.conf.Setting;
import io.trunkline.hadoop.conf.UcxSettings;
import io.trunkline.hadoop.library.BundledLibrary;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;

/**
 * Finds UCX on this machine and loads it. What does not fit is found here, before any native code
 * of it runs: a wrong version would otherwise end the JVM later.
 */
public final class UcxLibrary {
  /**
   * What was found.
   *
   * @param available whether UCX can be used
   * @param version of libucp, empty when there is none
   * @param path of libucp, empty when there is none
   * @param reason empty when available, else what is missing and how to get it
   */
  public record Status(boolean available, String version, String path, String reason) {}

  private static final String LIBUCP = "libucp.so.0";
  private static final String WAY_OUT =
      "install UCX "
          + LibraryVersion.OLDEST.major()
          + "."
          + LibraryVersion.OLDEST.minor()
          + " or newer (Debian, Ubuntu: apt install libucx0; RHEL: dnf install ucx ucx-ib"
          + " ucx-rdmacm), or name the directory that holds "
          + LIBUCP
          + " by "
          + Setting.UCX_LIBRARY_DIR.key();
  private static final List<String> SYSTEM_DIRECTORIES =
      List.of(
          "/usr/local/lib",
          "/lib/x86_64-linux-gnu",
          "/usr/lib/x86_64-linux-gnu",
          "/lib64",
          "/usr/lib64",
          "/lib",
          "/usr/lib",
          "/opt/ucx/lib");

  /** In the order in which they need one another. */
  private static final List<String> PARTS =
      List.of("libucm.so.0", "libucs.so.0", "libuct.so.0", LIBUCP);

  private static Status loaded;

  private UcxLibrary() {}

  /**
   * Looks for UCX without loading any of it.
   *
   * @param settings say where to look
   * @return what was found; never throws
   */
  public static Status probe(UcxSettings settings) {
    String machine = System.getProperty("os.name") + " " + System.getProperty("os.arch");
    if (!machine.toLowerCase(Locale.ROOT).equals("linux amd64")) {
      return missing("UCX is used on Linux on x86-64 only, this is " + machine);
    }
    Path library;
    try {
      library = find(settings.libraryDir());
    } catch (InvalidPathException e) {
      return missing(Setting.UCX_LIBRARY_DIR.key() + " = " + e.getInput() + ": " + e.getReason());
    }
    if (library == null) {
      String where =
          settings.libraryDir().isEmpty()
              ? "on the loader's path"
              : "in " + Setting.UCX_LIBRARY_DIR.key() + " = " + settings.libraryDir();
      return missing("no " + LIBUCP + " " + where + "; " + WAY_OUT);
    }
    LibraryVersion version;
    try {
      version = LibraryVersion.of(library);
    } catch (IOException e) {
      return missing(library + " cannot be read: " + e + "; " + WAY_OUT);
    }
    if (version == null) {
      return missing(library + " does not tell its version; " + WAY_OUT);
    }
    if (!version.accepted()) {
      return new Status(
          false,
          version.toString(),
          library.toString(),
          library + " is UCX " + version + ", which the jar's jucx does not fit; " + WAY_OUT);
    }
    return new Status(true, version.toString(), library.toString(), "");
  }

  private static Status missing(String reason) {
    return new Status(false, "", "", reason);
  }

  private static Path find(String directory) {
    if (!directory.isEmpty()) {
      return existing(Path.of(directory));
    }
    Set<String> directories = new LinkedHashSet<>();
    addAll(directories, System.getProperty("java.library.path"));
    addAll(directories, System.getenv("LD_LIBRARY_PATH"));
    directories.addAll(SYSTEM_DIRECTORIES);
    for (String candidate : directories) {
      try {
        Path library = existing(Path.of(candidate));
        if (library != null) {
          return library;
        }
      } catch (InvalidPathException e) {
        continue; // a name that no directory can have
      }
    }
    return null;
  }

  private static void addAll(Set<String> directories, String path) {
    if (path == null) {
      return;
    }
    for (String directory : path.split(":")) {
      if (!directory.isEmpty()) {
        directories.add(directory);
      }
    }
  }

  private static Path existing(Path directory) {
    Path library = directory.resolve(LIBUCP);
    return Files.isRegularFile(library) ? library.toAbsolutePath() : null;
  }

  /**
   * Loads UCX into this JVM, once; libucp is found again by its name when jucx's own library asks.
   *
   * @param settings say where to look
   * @return what was loaded
   * @throws UcxUnavailableException when UCX cannot be used here
   */
  static synchronized Status load(UcxSettings settings) throws UcxUnavailableException {
    if (loaded != null && settings.libraryDir().isEmpty()) {
      return loaded;
    }
    Status status = probe(settings);
    if (!status.available()) {
      throw new UcxUnavailableException(status.reason());
    }
    if (loaded != null) {
      if (!loaded.path().equals(status.path())) {
        throw new UcxUnavailableException(
            "this JVM has loaded "
                + loaded.path()
                + " already; "
                + status.path()
                + " can't join it");
      }
      return loaded;
    }
    Path directory = Path.of(status.path()).getParent();
    try {
      UcxNative.load();
      for (String part : PARTS) {
        System.load(directory.resolve(part).toString());
      }
      if (!UcxNative.findArm()) {
        throw new UnsatisfiedLinkError("no ucp_worker_arm in it");
      }
      BundledLibrary.load(UcxLibrary.class, "/libjucx_amd64.so");
    } catch (IOException | LinkageError e) {
      throw new UcxUnavailableException(
          "UCX " + status.version() + " does not load: " + e.getMessage() + "; " + WAY_OUT, e);
    }
    loaded = status;
    return status;
  }
}

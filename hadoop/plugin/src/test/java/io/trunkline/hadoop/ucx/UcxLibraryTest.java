package io.trunkline.hadoop.ucx;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.conf.Setting;
import io.trunkline.hadoop.conf.UcxSettings;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A machine without UCX, or with one that does not fit, is told so before anything is loaded. */
@Timeout(60)
class UcxLibraryTest {
  @TempDir Path directory;

  private UcxSettings settings() {
    return UcxSettings.builder().libraryDir(directory.toString()).build();
  }

  private void library(String version) throws Exception {
    String text = "\u007fELF ucp_get_version_string\0GLIBC_2.2.5\0" + "A" + version + "\0";
    Files.write(directory.resolve("libucp.so.0"), text.getBytes(StandardCharsets.ISO_8859_1));
  }

  @Test
  void withoutLibraryTheReasonSaysHowToInstall() {
    UcxLibrary.Status status = UcxLibrary.probe(settings());
    assertFalse(status.available());
    assertTrue(status.reason().contains(directory.toString()), status.reason());
    assertTrue(status.reason().contains("apt install libucx0"), status.reason());
  }

  @Test
  void versionsAreToldApart() throws Exception {
    library("1.13.1");
    assertEquals("1.13.1", UcxLibrary.probe(settings()).version());
    assertTrue(UcxLibrary.probe(settings()).available());
    for (String other : new String[] {"1.12.1", "2.0.0"}) {
      library(other);
      UcxLibrary.Status status = UcxLibrary.probe(settings());
      assertFalse(status.available(), other);
      assertTrue(status.reason().contains(other), status.reason());
    }
  }

  @Test
  void aFileWithoutVersionIsNotLoaded() throws Exception {
    Files.writeString(directory.resolve("libucp.so.0"), "not a library 1.13.1\0");
    assertNull(LibraryVersion.of(directory.resolve("libucp.so.0")));
    UcxUnavailableException e =
        assertThrows(UcxUnavailableException.class, () -> UcxLibrary.load(settings()));
    assertTrue(e.getMessage().contains("does not tell its version"), e.getMessage());
  }

  /** UCX takes signals over when it is loaded, which Java code needs all the time. */
  @Test
  void loadingLeavesTheJvmItsSignals() throws Exception {
    UcxTests.needUcx();
    Process loading = UcxTests.java("-XX:TieredStopAtLevel=1", LoadUnderFaults.class);
    String said = UcxTests.say(loading, null);
    assertEquals(0, loading.waitFor(), said);
    assertTrue(said.contains("loaded"), said);
  }

  @Test
  void settingsOutOfRangeAreNamed() {
    IllegalArgumentException e =
        assertThrows(
            IllegalArgumentException.class,
            () -> UcxSettings.builder().set(Setting.UCX_WORKERS, 0).build());
    assertTrue(e.getMessage().contains("trunkline.ucx.workers = \"0\""), e.getMessage());
    e =
        assertThrows(
            IllegalArgumentException.class,
            () -> UcxSettings.builder().set(Setting.UCX_WINDOW_BYTES, 1 << 19).build());
    assertTrue(e.getMessage().contains("trunkline.ucx.message.bytes"), e.getMessage());
  }
}

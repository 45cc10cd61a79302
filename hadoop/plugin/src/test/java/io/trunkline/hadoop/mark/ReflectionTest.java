package io.trunkline.hadoop.mark;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ReflectionTest {
  @Test
  void asTheSystemSays(@TempDir Path directory) throws IOException {
    Path sysctl = directory.resolve("tcp_reflect_tos");
    assertFalse(Reflection.on(sysctl), "Linux before 5.10");
    Files.writeString(sysctl, "0\n");
    assertFalse(Reflection.on(sysctl));
    Files.writeString(sysctl, "1\n");
    assertTrue(Reflection.on(sysctl));
  }
}

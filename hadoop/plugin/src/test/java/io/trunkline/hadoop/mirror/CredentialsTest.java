package io.trunkline.hadoop.mirror;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class CredentialsTest {
  @TempDir Path directory;

  private String file(String text, String permissions) throws IOException {
    Path path = Files.writeString(directory.resolve("file"), text);
    return Files.setPosixFilePermissions(path, PosixFilePermissions.fromString(permissions))
        .toString();
  }

  private static void refused(IOException e, String setting, String said) {
    assertTrue(e.getMessage().contains(setting), e.getMessage());
    assertTrue(e.getMessage().contains(said), e.getMessage());
  }

  @Test
  void aTokenIsReadFromAFileOfItsOwn() throws IOException {
    assertEquals("", Credentials.token(""));
    assertEquals("0123456789abcdef", Credentials.token(file("0123456789abcdef\n", "rw-------")));
  }

  @ParameterizedTest
  @CsvSource({
    "secret, rw-r-----, chmod 600",
    "secret, rw----r--, chmod 600",
    "'', rw-------, has no token",
    "two words, rw-------, has no token",
    "'a\nb', rw-------, has no token"
  })
  void aTokenThatIsNotSecretOrNoneIsRefused(String text, String permissions, String said)
      throws IOException {
    String path = file(text, permissions);
    IOException e = assertThrows(IOException.class, () -> Credentials.token(path));
    refused(e, "trunkline.mirror.token.file", said);
  }

  @Test
  void aFileThatIsMissingIsNamed() throws IOException {
    String missing = directory.resolve("missing").toString();
    refused(
        assertThrows(IOException.class, () -> Credentials.token(missing)), missing, "no such file");
    refused(assertThrows(IOException.class, () -> Credentials.tls(missing)), missing, "in PEM");
    String empty = file("", "rw-------");
    refused(
        assertThrows(IOException.class, () -> Credentials.tls(empty)),
        "trunkline.mirror.ca.file",
        "in PEM");
  }
}

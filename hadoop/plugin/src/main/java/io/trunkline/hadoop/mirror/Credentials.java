package io.trunkline.hadoop.mirror;

import io.trunkline.hadoop.conf.Setting;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.EnumSet;
import java.util.Set;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** What the controller is asked with, and what its certificate is checked against. */
final class Credentials {
  private static final int MAX_TOKEN_BYTES = 4096;
  private static final Set<PosixFilePermission> OWNERS =
      EnumSet.of(
          PosixFilePermission.OWNER_READ,
          PosixFilePermission.OWNER_WRITE,
          PosixFilePermission.OWNER_EXECUTE);

  private Credentials() {}

  /**
   * The bearer token.
   *
   * @param file keeps it, empty for none
   * @return the token, empty where there is none
   * @throws IOException when the file does not keep it secret, or has none
   */
  static String token(String file) throws IOException {
    if (file.isEmpty()) {
      return "";
    }
    Path path = Path.of(file);
    try {
      if (!Files.isRegularFile(path)) {
        throw wrong(Setting.MIRROR_TOKEN_FILE, file, "no such file", "name a file with the token");
      }
      if (!OWNERS.containsAll(Files.getPosixFilePermissions(path))) {
        throw wrong(
            Setting.MIRROR_TOKEN_FILE, file, "other users may read it", "chmod 600 " + file);
      }
      try (InputStream in = Files.newInputStream(path)) {
        String token =
            new String(in.readNBytes(MAX_TOKEN_BYTES), StandardCharsets.ISO_8859_1).strip();
        if (!token.matches("[\\x21-\\x7E]+")) {
          throw wrong(Setting.MIRROR_TOKEN_FILE, file, "has no token", "copy the controller's");
        }
        return token;
      }
    } catch (WrongFile e) {
      throw e;
    } catch (IOException e) {
      throw wrong(Setting.MIRROR_TOKEN_FILE, file, e.toString(), "name a file that can be read");
    }
  }

  /**
   * What TLS is spoken with.
   *
   * @param file certificates in PEM that the controller's is checked against, empty for the JVM's
   * @return the context
   * @throws IOException when they can't be read
   */
  static SSLContext tls(String file) throws IOException {
    try {
      if (file.isEmpty()) {
        return SSLContext.getDefault();
      }
      KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
      trusted.load(null, null);
      try (InputStream in = Files.newInputStream(Path.of(file))) {
        int number = 0;
        for (Certificate one : CertificateFactory.getInstance("X.509").generateCertificates(in)) {
          trusted.setCertificateEntry("ca" + number++, one);
        }
      }
      if (trusted.size() == 0) {
        throw new IOException("has no certificate");
      }
      TrustManagerFactory trust =
          TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
      trust.init(trusted);
      SSLContext context = SSLContext.getInstance("TLS");
      context.init(null, trust.getTrustManagers(), null);
      return context;
    } catch (IOException | GeneralSecurityException e) {
      throw wrong(Setting.MIRROR_CA_FILE, file, e.toString(), "name certificates in PEM");
    }
  }

  /** A file that a setting names is not as it should be. */
  private static final class WrongFile extends IOException {
    private static final long serialVersionUID = 1L;

    WrongFile(String message) {
      super(message);
    }
  }

  private static WrongFile wrong(Setting setting, String file, String cause, String fix) {
    return new WrongFile("setting " + setting.key() + " = \"" + file + "\": " + cause + "; " + fix);
  }
}

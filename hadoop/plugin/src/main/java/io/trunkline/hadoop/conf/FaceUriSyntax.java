package io.trunkline.hadoop.conf;

import java.net.URI;
import java.net.URISyntaxException;
import java.util.Set;

/** Checks that a setting is the URI of a face. */
final class FaceUriSyntax {
  private static final Set<String> INTERNET = Set.of("tcp", "tcp4", "tcp6", "udp", "udp4", "udp6");
  private static final Set<String> TLS = Set.of("tls", "tls4", "tls6");

  private FaceUriSyntax() {}

  static void check(String key, String value) {
    URI uri;
    try {
      uri = new URI(value);
    } catch (URISyntaxException e) {
      throw wrong(key, value, "bad URI, " + e.getReason());
    }
    String scheme = uri.getScheme();
    if (scheme == null) {
      throw wrong(key, value, "bad URI, it has no scheme");
    }
    if (scheme.equals("unix")) {
      if (uri.getPath() == null || uri.getPath().length() < 2) {
        throw wrong(key, value, "bad URI, it has no path");
      }
    } else if (INTERNET.contains(scheme)) {
      if (uri.getHost() == null || uri.getPort() > 65535 || uri.getPort() == 0) {
        throw wrong(key, value, "bad URI, it has no host or a wrong port");
      }
    } else if (TLS.contains(scheme)) {
      // A host's key belongs to its router, not to every program that loads this plug-in.
      throw refused(
          key,
          value,
          "the plug-in has no settings for certificates; run a router on this host, give its"
              + " unix:// or tcp:// address here, and have it connect by tls://");
    } else {
      throw wrong(key, value, "bad URI, no face has the scheme " + scheme);
    }
  }

  private static SettingsException wrong(String key, String value, String cause) {
    return refused(
        key,
        value,
        cause
            + "; write it as tcp://router.example:6363, udp://router.example:6363 or"
            + " unix:///run/nfd/nfd.sock");
  }

  private static SettingsException refused(String key, String value, String cause) {
    return new SettingsException("setting " + key + " = \"" + value + "\": " + cause);
  }
}

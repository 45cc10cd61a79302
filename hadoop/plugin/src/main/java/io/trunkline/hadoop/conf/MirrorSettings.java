package io.trunkline.hadoop.conf;

import java.net.URI;
import java.net.URISyntaxException;

/**
 * How the connections of pipelines are reported, so that switches copy what is written to all
 * replicas.
 *
 * @param controller REST interface of the controller, without a slash at the end; null for none
 * @param tokenFile file with its bearer token, empty for none
 * @param caFile certificates in PEM that an https controller is checked against, empty for those of
 *     the JVM
 * @param waitMs how long arming may take once a pipeline's last connection is reported, in
 *     milliseconds
 */
public record MirrorSettings(URI controller, String tokenFile, String caFile, int waitMs) {
  private static final int MAX_PORT = 65535;

  /**
   * Reads the URL of the controller.
   *
   * @return null where it is empty
   * @throws SettingsException when it is no URL of a server
   */
  static URI controller(String value) {
    if (value.isEmpty()) {
      return null;
    }
    try {
      URI url = new URI(value.replaceAll("/+$", ""));
      if (isServer(url)) {
        return url;
      }
    } catch (URISyntaxException e) {
      // said below
    }
    throw Setting.MIRROR_CONTROLLER.wrong(
        value, "no URL of a server", "write one, as http://192.0.2.1:8181");
  }

  private static boolean isServer(URI url) {
    return ("http".equals(url.getScheme()) || "https".equals(url.getScheme()))
        && url.getHost() != null
        && url.getPort() != 0
        && url.getPort() <= MAX_PORT
        && url.getRawUserInfo() == null
        && url.getRawQuery() == null
        && url.getRawFragment() == null;
  }
}

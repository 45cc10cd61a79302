package io.trunkline.hadoop.mark;

import io.trunkline.hadoop.conf.Settings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Marks of connections that stock code accepts, at a DataNode's data port above all, whose answers
 * are what is read. Nothing in Hadoop sets them. Linux does: with {@code net.ipv4.tcp_reflect_tos}
 * (ip-sysctl, since 5.10) a connection that is accepted sends with the mark of the first packet
 * that came, over IPv4 and IPv6.
 */
public final class Reflection {
  private static final Logger LOG = LoggerFactory.getLogger(Reflection.class);
  private static final Path SYSCTL = Path.of("/proc/sys/net/ipv4/tcp_reflect_tos");

  private Reflection() {}

  /**
   * Says so in the log where connections are to be marked and those that are accepted are not.
   *
   * @param settings the settings
   */
  public static void check(Settings settings) {
    if (settings.marks() && !on(SYSCTL)) {
      LOG.warn(
          "what this process answers is not marked, blocks read from it by TCP included; run"
              + " sysctl -w net.ipv4.tcp_reflect_tos=1 (Linux 5.10 and newer)");
    }
  }

  static boolean on(Path sysctl) {
    try {
      return Files.readString(sysctl).trim().equals("1");
    } catch (IOException e) {
      return false;
    }
  }
}

package io.trunkline.hadoop.ucx;

import io.trunkline.hadoop.conf.Setting;
import io.trunkline.hadoop.conf.UcxSettings;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;

/**
 * What {@link SelfTest} is to do.
 *
 * @param mode first argument
 * @param address to listen on or to connect to
 * @param bytes of each stream, each way
 * @param streams at a time
 * @param patience factor of every time-out
 * @param settings of the transport
 * @param forChildren options that children are given too
 */
record SelfTestOptions(
    String mode,
    InetSocketAddress address,
    long bytes,
    int streams,
    int patience,
    UcxSettings settings,
    List<String> forChildren) {
  private static final List<String> MODES =
      List.of("probe", "server", "client", "flood", "peer-kill", "all");

  /**
   * Reads the command line.
   *
   * @throws IllegalArgumentException saying what is wrong with it
   */
  static SelfTestOptions parse(String[] arguments) {
    String mode = arguments.length == 0 ? "" : arguments[0];
    if (!MODES.contains(mode)) {
      throw new IllegalArgumentException("first argument: one of " + String.join(", ", MODES));
    }
    InetSocketAddress address = new InetSocketAddress("127.0.0.1", 0);
    long bytes = 32 << 20;
    int streams = 4;
    int patience = 1;
    UcxSettings.Builder settings = UcxSettings.builder();
    List<String> children = new ArrayList<>();
    for (int i = 1; i < arguments.length; i += 2) {
      String key = arguments[i];
      if (i + 1 == arguments.length) {
        throw new IllegalArgumentException(key + " wants a value");
      }
      String value = arguments[i + 1];
      boolean own = false;
      switch (key) {
        case "--listen", "--connect" -> {
          address = address(value);
          own = true;
        }
        case "--address" -> {
          address = new InetSocketAddress(value, 0);
          own = true;
        }
        case "--bytes" -> bytes = number(key, value);
        case "--streams" -> streams = Math.toIntExact(number(key, value));
        case "--patience" -> {
          patience = Math.toIntExact(number(key, value));
          settings.set(Setting.UCX_CONNECT_MS, Setting.UCX_CONNECT_MS.defaultNumber() * patience);
        }
        case "--wake-check-ms" -> settings.set(Setting.UCX_WAKE_CHECK_MS, number(key, value));
        case "--workers" -> settings.set(Setting.UCX_WORKERS, number(key, value));
        case "--library-dir" -> settings.libraryDir(value);
        default -> throw new IllegalArgumentException("unknown option " + key);
      }
      if (!own) {
        children.addAll(List.of(key, value));
      }
    }
    return new SelfTestOptions(mode, address, bytes, streams, patience, settings.build(), children);
  }

  private static long number(String key, String value) {
    try {
      long number = Long.parseLong(value);
      if (number > 0) {
        return number;
      }
    } catch (NumberFormatException e) {
      throw new IllegalArgumentException(key + " " + value + ": not a number", e);
    }
    throw new IllegalArgumentException(key + " " + value + ": must be at least 1");
  }

  /** Reads {@code ADDRESS:PORT}. */
  static InetSocketAddress address(String text) {
    int colon = text.lastIndexOf(':');
    if (colon < 0) {
      throw new IllegalArgumentException(text + ": not ADDRESS:PORT");
    }
    return new InetSocketAddress(
        text.substring(0, colon), Integer.parseInt(text.substring(colon + 1)));
  }
}

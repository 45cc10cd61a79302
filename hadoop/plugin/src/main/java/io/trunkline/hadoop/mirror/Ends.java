package io.trunkline.hadoop.mirror;

import io.trunkline.hadoop.conf.JsonText;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;

/**
 * Both ends of a TCP connection, as its packets have them.
 *
 * @param source who opened it
 * @param destination who accepted it
 */
record Ends(InetSocketAddress source, InetSocketAddress destination) {
  /**
   * Reads one end as {@link InetSocketAddress#toString} writes it, which is all that stock peers
   * tell of theirs: {@code host/192.0.2.1:9866}, {@code /[2001:db8::1]:9866}.
   *
   * @param text the end
   * @return the address
   * @throws IOException when it is none, such as that of a Unix domain socket
   */
  static InetSocketAddress parse(String text) throws IOException {
    String end = text.substring(text.lastIndexOf('/') + 1);
    int colon = end.lastIndexOf(':');
    try {
      String address = end.substring(0, colon).replaceAll("^\\[(.*)]$", "$1");
      // A name would be looked up.
      if (address.indexOf(':') >= 0 || address.matches("[0-9]+(\\.[0-9]+){3}")) {
        int port = Integer.parseInt(end.substring(colon + 1));
        return new InetSocketAddress(InetAddress.getByName(address), port);
      }
    } catch (IOException | IllegalArgumentException | IndexOutOfBoundsException e) {
      // said below
    }
    throw new IOException("not an address and port: " + text);
  }

  /** Writes them as the fields {@code source} and {@code destination}. */
  void write(JsonText json) {
    write(json, "source", source);
    write(json, "destination", destination);
  }

  private static void write(JsonText json, String name, InetSocketAddress end) {
    json.open(name);
    String address = end.getAddress().getHostAddress();
    int scope = address.indexOf('%');
    json.text("address", scope < 0 ? address : address.substring(0, scope));
    json.number("port", end.getPort());
    json.close();
  }
}

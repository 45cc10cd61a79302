package io.trunkline.hadoop.transport;

import io.trunkline.hadoop.conf.Json;
import io.trunkline.hadoop.conf.JsonText;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.regex.Pattern;

/**
 * What a DataNode says of one of its transports.
 *
 * @param version of what its plug-in speaks on a connection by that transport
 * @param served whether it takes data by it
 * @param address where its plug-in listens, an IP address in figures; empty for the one it is known
 *     under. Clients go to no other host than that
 * @param port port of its plug-in, 0 when it is not served
 * @param reason why it is not served, empty when it is
 * @param secured whether it takes connections alone that are made secure by a block token
 * @param split where it takes connections that go by two ways, null when it does not
 */
public record DataNodeRecord(
    int version,
    boolean served,
    String address,
    int port,
    String reason,
    boolean secured,
    Split split) {
  /**
   * Ports of connections whose small messages go by TCP, and whose large ones go by the transport.
   *
   * @param port of the transport
   * @param tcpPort of TCP, on the same host
   */
  public record Split(int port, int tcpPort) {}

  /** That of plug-ins which do not say one. */
  private static final String FIRST_VERSION = "1";

  static final int MAX_BYTES = 4096;

  /** Longest of IPv6 with a zone. */
  private static final int MAX_ADDRESS_CHARS = 64;

  private static final String OCTET = "(25[0-5]|2[0-4]\\d|[01]?\\d?\\d)";

  /**
   * An IP address in figures: what a stranger answers is never looked up in a name service. {@link
   * java.net.InetAddress} does so with four numbers when one is above 255, and with colons behind a
   * dot.
   */
  private static final Pattern FIGURES =
      Pattern.compile("|(" + OCTET + "\\.){3}" + OCTET + "|[0-9a-fA-F]*:[0-9a-fA-F:.]*(%\\w+)?");

  /**
   * A record of a DataNode that takes connections as they come.
   *
   * @param version of what its plug-in speaks
   * @param served whether it takes data
   * @param address where its plug-in listens
   * @param port port of its plug-in
   * @param reason why it is not served
   */
  public DataNodeRecord(int version, boolean served, String address, int port, String reason) {
    this(version, served, address, port, reason, false);
  }

  /**
   * A record of a DataNode whose connections go by one way.
   *
   * @param version of what its plug-in speaks
   * @param served whether it takes data
   * @param address where its plug-in listens
   * @param port port of its plug-in
   * @param reason why it is not served
   * @param secured whether it takes connections alone that are made secure by a block token
   */
  public DataNodeRecord(
      int version, boolean served, String address, int port, String reason, boolean secured) {
    this(version, served, address, port, reason, secured, null);
  }

  /**
   * Writes the record.
   *
   * @return JSON
   */
  public byte[] encode() {
    JsonText json = new JsonText();
    json.number("version", version);
    json.flag("served", served);
    json.text("address", address);
    json.number("port", port);
    json.text("reason", reason);
    if (secured) {
      json.flag("secured", true);
    }
    if (split != null) {
      json.number("splitPort", split.port());
      json.number("splitTcpPort", split.tcpPort());
    }
    return json.end().getBytes(StandardCharsets.UTF_8);
  }

  /**
   * Reads a record.
   *
   * @param content what the DataNode answered
   * @return the record
   * @throws IOException when it is none
   */
  public static DataNodeRecord decode(byte[] content) throws IOException {
    return decode(content, Json::scalars);
  }

  /**
   * Reads a record.
   *
   * @param content what the DataNode answered
   * @param reader takes it apart
   * @return the record
   * @throws IOException when it is none
   */
  public static DataNodeRecord decode(byte[] content, Json.Reader reader) throws IOException {
    if (content.length > MAX_BYTES) {
      throw new IOException("DataNode record of " + content.length + " bytes");
    }
    try {
      Map<String, String> json = reader.read(content);
      boolean served = "true".equals(json.get("served"));
      int version = Integer.parseInt(json.getOrDefault("version", FIRST_VERSION));
      int port = Integer.parseInt(json.getOrDefault("port", "0"));
      if (served && (port < 1 || port > 65535)) {
        throw new IOException("port " + port);
      }
      String address = json.getOrDefault("address", "");
      if (address.length() > MAX_ADDRESS_CHARS) {
        throw new IOException("address of " + address.length() + " characters");
      }
      if (!FIGURES.matcher(address).matches()) {
        throw new IOException("address " + address + " is not in figures");
      }
      String reason = json.getOrDefault("reason", "").replaceAll("\\p{Cntrl}", " ");
      boolean secured = "true".equals(json.get("secured"));
      Split split = json.containsKey("splitPort") ? split(json) : null;
      return new DataNodeRecord(version, served, address, port, reason, secured, split);
    } catch (IOException | NumberFormatException e) {
      throw new IOException("DataNode record is malformed: " + e.getMessage(), e);
    }
  }

  private static Split split(Map<String, String> json) throws IOException {
    int port = Integer.parseInt(json.get("splitPort"));
    int tcpPort = Integer.parseInt(json.getOrDefault("splitTcpPort", "0"));
    if (Math.min(port, tcpPort) < 1 || Math.max(port, tcpPort) > 65535) {
      throw new IOException("ports " + port + " and " + tcpPort);
    }
    return new Split(port, tcpPort);
  }
}

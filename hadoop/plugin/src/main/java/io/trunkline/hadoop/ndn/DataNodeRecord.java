package io.trunkline.hadoop.ndn;

import io.trunkline.hadoop.conf.Json;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * What a DataNode publishes of itself below its discovery name.
 *
 * @param named whether it takes writes by name
 * @param address where its plug-in listens, empty for the address it is known under
 * @param port TCP port of its plug-in, 0 when it is not named
 * @param reason why it is not named, empty when it is
 */
public record DataNodeRecord(boolean named, String address, int port, String reason) {
  private static final int MAX_BYTES = 4096;

  /**
   * Writes the record.
   *
   * @return JSON
   */
  public byte[] encode() {
    return Json.object(
            json -> {
              json.writeBooleanField("named", named);
              json.writeStringField("address", address);
              json.writeNumberField("port", port);
              json.writeStringField("reason", reason);
            })
        .getBytes(StandardCharsets.UTF_8);
  }

  /**
   * Reads a record.
   *
   * @param content what came under the discovery name
   * @return the record
   * @throws IOException when it is none
   */
  public static DataNodeRecord decode(byte[] content) throws IOException {
    if (content.length > MAX_BYTES) {
      throw new IOException("DataNode record of " + content.length + " bytes");
    }
    try {
      Map<String, String> json = Json.scalars(new String(content, StandardCharsets.UTF_8));
      boolean named = "true".equals(json.get("named"));
      int port = Integer.parseInt(json.getOrDefault("port", "0"));
      if (named && (port < 1 || port > 65535)) {
        throw new IOException("port " + port);
      }
      return new DataNodeRecord(
          named, json.getOrDefault("address", ""), port, json.getOrDefault("reason", ""));
    } catch (IOException | NumberFormatException e) {
      throw new IOException("DataNode record is malformed: " + e.getMessage(), e);
    }
  }
}

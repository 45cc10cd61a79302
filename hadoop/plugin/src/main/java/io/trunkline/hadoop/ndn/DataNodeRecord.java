package io.trunkline.hadoop.ndn;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

/**
 * What a DataNode publishes of itself below its discovery name.
 *
 * @param named whether it takes writes by name
 * @param address where its plug-in listens, empty for the address it is known under
 * @param port TCP port of its plug-in, 0 when it is not named
 * @param reason why it is not named, empty when it is
 */
public record DataNodeRecord(boolean named, String address, int port, String reason) {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final int MAX_BYTES = 4096;

  /**
   * Writes the record.
   *
   * @return JSON
   */
  public byte[] encode() {
    ObjectNode json = JSON.createObjectNode();
    json.put("named", named);
    json.put("address", address);
    json.put("port", port);
    json.put("reason", reason);
    return json.toString().getBytes(StandardCharsets.UTF_8);
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
    JsonNode json;
    try {
      json = JSON.readTree(content);
    } catch (JsonProcessingException e) {
      throw new IOException("DataNode record is no JSON", e);
    }
    if (json == null || !json.isObject()) {
      throw new IOException("DataNode record is no JSON object");
    }
    boolean named = json.path("named").asBoolean(false);
    int port = json.path("port").asInt(0);
    if (named && (port < 1 || port > 65535)) {
      throw new IOException("DataNode record with port " + port);
    }
    return new DataNodeRecord(
        named, json.path("address").asText(""), port, json.path("reason").asText(""));
  }
}

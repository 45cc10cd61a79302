package io.trunkline.hadoop.conf;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/**
 * Small JSON objects, read as streams: binding them to classes would cost every short command a
 * tenth of a second of loading.
 */
public final class Json {
  private static final JsonFactory FACTORY = new JsonFactory();
  private static final int MAX_DEPTH = 16;

  /** Longest name, with those of the objects that it lies in: each value within keeps them anew. */
  private static final int MAX_NAME_CHARS = 200;

  private Json() {}

  /** Takes a JSON object apart. */
  @FunctionalInterface
  public interface Reader {
    /**
     * Reads its scalars.
     *
     * @param json JSON in UTF-8
     * @return values by name, as {@link Json#scalars(String)} gives them
     * @throws IOException when that is no JSON object
     */
    Map<String, String> read(byte[] json) throws IOException;
  }

  /**
   * Reads the scalars of an object.
   *
   * @param text JSON
   * @return values by name; those of an object within are named {@code outer.inner}, lists are left
   *     out
   * @throws IOException when the text is no JSON object
   */
  public static Map<String, String> scalars(String text) throws IOException {
    Map<String, String> values = new HashMap<>();
    try (JsonParser json = FACTORY.createParser(text)) {
      if (json.nextToken() != JsonToken.START_OBJECT) {
        throw new IOException("no JSON object");
      }
      object(json, "", values, 0);
      if (json.nextToken() != null) {
        throw new IOException("more than a JSON object");
      }
    }
    return values;
  }

  /**
   * Reads the scalars of an object.
   *
   * @param json JSON in UTF-8
   * @return as {@link #scalars(String)}
   * @throws IOException when that is no JSON object
   */
  public static Map<String, String> scalars(byte[] json) throws IOException {
    return scalars(new String(json, StandardCharsets.UTF_8));
  }

  private static void object(JsonParser json, String prefix, Map<String, String> values, int depth)
      throws IOException {
    if (depth > MAX_DEPTH) {
      throw new IOException("JSON objects lie too deep in one another");
    }
    while (json.nextToken() != JsonToken.END_OBJECT) {
      String own = json.currentName();
      if (own != null && prefix.length() + own.length() > MAX_NAME_CHARS) {
        throw new IOException("JSON object with a name of more than " + MAX_NAME_CHARS + " chars");
      }
      String name = prefix + own;
      JsonToken value = json.nextToken();
      if (value == null) {
        throw new IOException("JSON object has no end");
      }
      switch (value) {
        case START_OBJECT -> object(json, name + '.', values, depth + 1);
        case START_ARRAY -> json.skipChildren();
        default -> values.put(name, json.getText());
      }
    }
  }
}

package io.trunkline.hadoop.conf;

import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

class JsonTextTest {
  private static JsonNode read(String json) throws IOException {
    return new ObjectMapper().readTree(json);
  }

  @Test
  void allKindsOfFields() throws IOException {
    JsonText out = new JsonText();
    out.open("empty");
    out.close();
    out.text("text", "a\"b\\c\n\u0001é");
    out.open("within");
    out.number("least", Long.MIN_VALUE);
    out.open("deeper");
    out.flag("yes", true);
    out.close();
    out.flag("no", false);
    out.close();
    out.texts("none", List.of());
    out.texts("two", List.of("[", "{"));
    out.objects("objects", List.of("{\"a\":1}", "{}"));
    assertEquals(
        read(
            "{\"empty\":{},\"text\":\"a\\\"b\\\\c\\n\\u0001\u00e9\",\"within\":{\"least\":"
                + "-9223372036854775808,\"deeper\":{\"yes\":true},\"no\":false},\"none\":[],"
                + "\"two\":[\"[\",\"{\"],\"objects\":[{\"a\":1},{}]}"),
        read(out.end()));
    assertEquals("{}", new JsonText().end());
  }

  @Test
  void whateverIsWrittenIsRead() throws IOException {
    Random random = new Random(1);
    for (int round = 0; round < 2000; round++) {
      StringBuilder text = new StringBuilder();
      for (int i = random.nextInt(12); i > 0; i--) {
        text.append((char) random.nextInt(random.nextBoolean() ? 128 : 65_536));
      }
      String any = text.toString();
      JsonText out = new JsonText();
      out.texts(any, List.of(any, any));
      out.text("another " + any, any);
      JsonNode read = read(out.end());
      assertEquals(any, read.get(any).get(0).asText());
      assertEquals(any, read.get(any).get(1).asText());
      assertEquals(any, read.get("another " + any).asText());
    }
  }
}

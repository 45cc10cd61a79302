package io.trunkline.hadoop.conf;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.code_intelligence.jazzer.junit.FuzzTest;
import io.trunkline.hadoop.Fuzzing;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/** Anything as a JSON object. */
class JsonFuzz {
  @FuzzTest
  void scalars(byte[] bytes) {
    String text = new String(bytes, StandardCharsets.UTF_8);
    Map<String, String> values = Fuzzing.decode(bytes.length, 128, () -> Json.scalars(text));
    if (values != null) {
      assertTrue(values.size() <= text.length());
    }
  }
}

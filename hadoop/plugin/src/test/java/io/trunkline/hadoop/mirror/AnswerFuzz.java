package io.trunkline.hadoop.mirror;

import static org.junit.jupiter.api.Assertions.assertTrue;

import com.code_intelligence.jazzer.junit.FuzzTest;
import io.trunkline.hadoop.Fuzzing;
import java.nio.charset.StandardCharsets;

/** Anything as what the controller says. */
class AnswerFuzz {
  @FuzzTest
  void answer(byte[] bytes) {
    String text = new String(bytes, StandardCharsets.UTF_8);
    Answer answer = Fuzzing.decode(bytes.length, 128, () -> Answer.of(text));
    if (answer != null) {
      assertTrue(answer.leaseMs() > 0, answer::toString);
      assertTrue(answer.toString().chars().allMatch(c -> c >= ' ' && c <= '~'), answer::toString);
    }
  }
}

package io.trunkline.hadoop.mirror;

import io.trunkline.hadoop.conf.Json;
import io.trunkline.hadoop.conf.Setting;
import java.io.IOException;
import java.util.Locale;
import java.util.Map;

/**
 * What the controller says of a pipeline whose connection was reported.
 *
 * @param id by which it is ended
 * @param state how far it is
 * @param why in a word, where it is refused; empty otherwise
 * @param what the same for people
 * @param leaseMs after so many milliseconds the controller forgets it, unless a connection of it is
 *     reported again
 */
record Answer(String id, State state, String why, String what, long leaseMs) {
  /** How far a pipeline is. */
  enum State {
    /** Connections of it have not been reported. */
    ANNOUNCED,
    /** Switches are being told. */
    ARMING,
    /** Switches copy its segments. */
    ARMED,
    /** It is not mirrored now. */
    REFUSED
  }

  private static final String ID = "[A-Za-z0-9._:~-]{1,320}";
  private static final double MIN_LEASE_S = 0.001;
  private static final double MAX_LEASE_S = 86_400;

  /**
   * Reads an answer.
   *
   * @param text JSON
   * @return the answer
   * @throws IOException when it is none
   */
  static Answer of(String text) throws IOException {
    Map<String, String> values = scalars(text);
    String id = values.getOrDefault("id", "");
    String state = values.getOrDefault("state", "");
    try {
      double leaseS = Double.parseDouble(values.getOrDefault("lease_s", ""));
      if (id.matches(ID) && leaseS >= MIN_LEASE_S && leaseS <= MAX_LEASE_S) {
        return new Answer(
            id,
            State.valueOf(state.toUpperCase(Locale.ROOT)),
            Text.word(values.get("why")),
            Text.printable(values.get("what")),
            (long) (leaseS * 1000));
      }
    } catch (IllegalArgumentException e) {
      // said below
    }
    throw new IOException(
        "its answer is not what a controller says of a pipeline; does "
            + Setting.MIRROR_CONTROLLER.key()
            + " name one?");
  }

  private static Map<String, String> scalars(String text) {
    try {
      return Json.scalars(text);
    } catch (IOException e) {
      return Map.of(); // so that nothing of it is right
    }
  }
}

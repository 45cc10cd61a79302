package io.trunkline.hadoop.wire;

import java.util.Arrays;

/**
 * A block access token, as the header of an operation carries it. Whoever has the password may do
 * what the identifier says, so it stands in no text.
 *
 * @param identifier says what may be done, by whom, until when
 * @param password made of the identifier with the cluster's block key
 */
public record BlockToken(byte[] identifier, byte[] password) {
  /** Longest identifier that is shown or looked at, in bytes; stock ones have some 50 a replica. */
  public static final int MAX_IDENTIFIER_BYTES = 4096;

  /** Has the password no more; for tokens whose arrays are nobody else's. */
  public void wipe() {
    Arrays.fill(password, (byte) 0);
  }

  @Override
  public String toString() {
    return "BlockToken(" + identifier.length + " bytes)";
  }
}

package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.ndn.secure.SecureSession;
import io.trunkline.hadoop.ndn.wire.SecureHello;
import io.trunkline.hadoop.ndn.wire.Welcome;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.util.LogLimit;
import java.io.IOException;
import java.util.Arrays;
import org.apache.hadoop.security.token.SecretManager.InvalidToken;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The handshake of one connection to the plug-in, as the DataNode does it. */
final class Handshakes implements NamedInput.Security {
  /** Is told once the other end has shown that it has a right to be here. */
  interface Known {
    /** It has. */
    void known() throws IOException;
  }

  private static final Logger LOG = LoggerFactory.getLogger(Handshakes.class);

  /** Of all connections: strangers can bring refusals about as often as they like. */
  private static final LogLimit LINES = new LogLimit();

  private static final int MAX_SHOWN = 200;

  private final BlockTokens tokens;
  private final OwnAddresses own;
  private final Welcome welcome;
  private final AnswerOutput out;
  private final Known known;

  /**
   * For one connection.
   *
   * @param tokens knows passwords, null where there are no tokens
   * @param own which DataNode this is
   * @param welcome what this end has said first
   * @param out takes the answer, and all that follows it
   * @param known told once of who is no stranger any more
   */
  Handshakes(BlockTokens tokens, OwnAddresses own, Welcome welcome, AnswerOutput out, Known known) {
    this.tokens = tokens;
    this.own = own;
    this.welcome = welcome;
    this.out = out;
    this.known = known;
  }

  @Override
  public void known() throws IOException {
    known.known();
  }

  @Override
  public boolean required() {
    return tokens != null;
  }

  @Override
  public SecureSession answer(SecureHello hello) throws IOException {
    try {
      if (tokens == null) {
        throw new IOException("this DataNode has no block tokens");
      }
      if (!own.include(hello.address())) {
        // Passed on by whoever stands in the place of that one, or an address that was translated.
        throw new IOException("it is for " + hello.address() + ", which is not this DataNode");
      }
      SecureSession session = session(hello);
      try {
        session.hear(hello.message());
        out.secure(session.say(), session);
        return session;
      } catch (IOException | RuntimeException e) {
        session.close();
        throw e;
      }
    } catch (IOException e) {
      TransferStats.get().add(Counter.HANDSHAKES_REFUSED);
      if (LINES.allows()) {
        LOG.warn(
            "named data: a connection is refused: {}; more in a minute are only counted",
            shown(e.getMessage()));
      }
      // Stock code has no line of its own for this one.
      InvalidToken refused = new InvalidToken(e.getMessage());
      refused.initCause(e);
      throw refused;
    }
  }

  private SecureSession session(SecureHello hello) throws IOException {
    byte[] password = tokens.password(hello.identifier());
    try {
      return SecureSession.server(welcome, password, hello.identifier(), hello.address());
    } finally {
      Arrays.fill(password, (byte) 0);
    }
  }

  /**
   * What stock code says of a token has the token's own texts in it, which anybody may have
   * written.
   */
  static String shown(String message) {
    String line = String.valueOf(message).replaceAll("\\p{Cntrl}", " ");
    return line.length() <= MAX_SHOWN ? line : line.substring(0, MAX_SHOWN) + "…";
  }
}

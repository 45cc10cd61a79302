package io.trunkline.hadoop;

import io.trunkline.hadoop.transport.SecuredConnection;
import java.net.InetAddress;
import org.apache.hadoop.hdfs.protocol.datatransfer.TrustedChannelResolver;

/**
 * Tells HDFS which connections the plug-in has made secure, so that it does without a handshake of
 * its own there, for {@code dfs.trustedchannel.resolver.class}. All others get the full protection
 * that the cluster is set up for.
 */
public final class TrunklineTrustedChannelResolver extends TrustedChannelResolver {
  /**
   * Asks {@link #isTrusted()} alone, does its handshake anyway, and is not called for writes: what
   * it asks for has never been made secure.
   */
  private static final String ASKS_ALONE = "newSocketSend";

  /** From {@link #isTrusted()} to who asks. */
  private static final int NEAR = 3;

  /** Made by Hadoop. */
  public TrunklineTrustedChannelResolver() {}

  @Override
  public boolean isTrusted() {
    return SecuredConnection.isLast()
        && StackWalker.getInstance()
            .walk(
                frames -> frames.limit(NEAR).noneMatch(f -> f.getMethodName().equals(ASKS_ALONE)));
  }

  @Override
  public boolean isTrusted(InetAddress peer) {
    return SecuredConnection.trust(peer);
  }
}

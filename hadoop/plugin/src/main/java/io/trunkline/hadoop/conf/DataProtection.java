package io.trunkline.hadoop.conf;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CommonConfigurationKeysPublic;
import org.apache.hadoop.hdfs.DFSConfigKeys;
import org.apache.hadoop.hdfs.client.HdfsClientConfigKeys;

/**
 * How a Hadoop configuration wants data transfer protected, and what of that named data can give.
 * Clients and DataNodes judge by their own configuration, and by the block token that they have,
 * never by what the network tells them.
 *
 * <pre>
 *                                   writes by name               reads by name
 *   nothing                         as they are                  as they are
 *   block tokens                    secured by the token         secured by the token
 *   and SASL or encryption          the same, with the resolver  the same
 *   SASL or encryption, no tokens   no, stock TCP                no, stock TCP
 * </pre>
 */
public final class DataProtection {
  /** Where Hadoop is told which connections need no handshake of its own. */
  public static final String RESOLVER_KEY = HdfsClientConfigKeys.DFS_TRUSTEDCHANNEL_RESOLVER_CLASS;

  /** Ours. */
  public static final String RESOLVER = "io.trunkline.hadoop.TrunklineTrustedChannelResolver";

  private DataProtection() {}

  /**
   * Whether blocks have access tokens.
   *
   * @param conf the process's own configuration
   * @return true when it says so; clients often say nothing
   */
  public static boolean blockTokens(Configuration conf) {
    return conf.getBoolean(
        DFSConfigKeys.DFS_BLOCK_ACCESS_TOKEN_ENABLE_KEY,
        DFSConfigKeys.DFS_BLOCK_ACCESS_TOKEN_ENABLE_DEFAULT);
  }

  /**
   * What protects data transfer, so that nothing may go by name which is not secured by a block
   * token.
   *
   * @param conf the process's own configuration
   * @return the key and its value; empty when nothing does
   */
  public static String of(Configuration conf) {
    String handshake = stockHandshake(conf);
    if (!handshake.isEmpty()) {
      return handshake;
    }
    if (blockTokens(conf)) {
      return DFSConfigKeys.DFS_BLOCK_ACCESS_TOKEN_ENABLE_KEY + " is true";
    }
    String authentication = authentication(conf);
    return authentication.isEmpty()
        ? ""
        : CommonConfigurationKeysPublic.HADOOP_SECURITY_AUTHENTICATION + " is " + authentication;
  }

  /** What has stock code do a handshake on connections; empty when nothing does. */
  private static String stockHandshake(Configuration conf) {
    if (conf.getBoolean(
        DFSConfigKeys.DFS_ENCRYPT_DATA_TRANSFER_KEY,
        DFSConfigKeys.DFS_ENCRYPT_DATA_TRANSFER_DEFAULT)) {
      return DFSConfigKeys.DFS_ENCRYPT_DATA_TRANSFER_KEY + " is true";
    }
    String protection = conf.getTrimmed(DFSConfigKeys.DFS_DATA_TRANSFER_PROTECTION_KEY, "");
    return protection.isEmpty()
        ? ""
        : DFSConfigKeys.DFS_DATA_TRANSFER_PROTECTION_KEY + " is " + protection;
  }

  /** Empty for none. */
  private static String authentication(Configuration conf) {
    String value =
        conf.getTrimmed(CommonConfigurationKeysPublic.HADOOP_SECURITY_AUTHENTICATION, "simple");
    return value.equalsIgnoreCase("simple") ? "" : value;
  }

  /**
   * Why a write with a block token may not go by name.
   *
   * @param conf the process's own configuration
   * @return what is missing; empty when nothing is
   */
  public static String againstSecuredWrites(Configuration conf) {
    String handshake = stockHandshake(conf);
    if (handshake.isEmpty() || RESOLVER.equals(conf.getTrimmed(RESOLVER_KEY, ""))) {
      return "";
    }
    return handshake + ", and " + RESOLVER_KEY + " is not " + RESOLVER;
  }

  /**
   * Why a DataNode may take nothing by name.
   *
   * @param conf the DataNode's configuration
   * @return what is missing; empty when nothing is
   */
  public static String againstServing(Configuration conf) {
    String protection = of(conf);
    if (protection.isEmpty() || blockTokens(conf)) {
      return "";
    }
    return protection
        + ", and "
        + DFSConfigKeys.DFS_BLOCK_ACCESS_TOKEN_ENABLE_KEY
        + " is not true: named data is secured by block tokens";
  }

  /**
   * Why blocks may not be read by name that have no token.
   *
   * @param conf the process's own configuration
   * @return the key that forbids it; empty when nothing does
   */
  public static String againstReads(Configuration conf) {
    String protection = of(conf);
    return protection.isEmpty() ? "" : protection + ", and the block has no token";
  }
}

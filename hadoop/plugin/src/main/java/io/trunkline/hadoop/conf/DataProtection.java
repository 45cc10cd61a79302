package io.trunkline.hadoop.conf;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.CommonConfigurationKeysPublic;
import org.apache.hadoop.hdfs.DFSConfigKeys;

/**
 * What a Hadoop configuration demands for data transfer that named data can't give: block access
 * tokens, SASL or encryption. Clients and DataNodes judge by their own configuration, never by what
 * the network tells them.
 */
public final class DataProtection {
  private DataProtection() {}

  /**
   * Why data may not go by name under a configuration.
   *
   * @param conf the process's own configuration
   * @return the key that forbids it and what named data lacks; empty when nothing forbids it
   */
  public static String againstNamedData(Configuration conf) {
    if (conf.getBoolean(
        DFSConfigKeys.DFS_ENCRYPT_DATA_TRANSFER_KEY,
        DFSConfigKeys.DFS_ENCRYPT_DATA_TRANSFER_DEFAULT)) {
      return DFSConfigKeys.DFS_ENCRYPT_DATA_TRANSFER_KEY + " is on, named data is not encrypted";
    }
    if (!conf.getTrimmed(DFSConfigKeys.DFS_DATA_TRANSFER_PROTECTION_KEY, "").isEmpty()) {
      return DFSConfigKeys.DFS_DATA_TRANSFER_PROTECTION_KEY
          + " is set, named data has no SASL protection";
    }
    if (conf.getBoolean(
        DFSConfigKeys.DFS_BLOCK_ACCESS_TOKEN_ENABLE_KEY,
        DFSConfigKeys.DFS_BLOCK_ACCESS_TOKEN_ENABLE_DEFAULT)) {
      return DFSConfigKeys.DFS_BLOCK_ACCESS_TOKEN_ENABLE_KEY
          + " is on, named data cannot check block tokens";
    }
    String authentication =
        conf.getTrimmed(CommonConfigurationKeysPublic.HADOOP_SECURITY_AUTHENTICATION, "simple");
    if (!authentication.isEmpty() && !authentication.equalsIgnoreCase("simple")) {
      return CommonConfigurationKeysPublic.HADOOP_SECURITY_AUTHENTICATION
          + " is "
          + authentication
          + ", named data authenticates nobody";
    }
    return "";
  }
}

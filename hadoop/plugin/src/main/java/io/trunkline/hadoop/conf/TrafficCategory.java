package io.trunkline.hadoop.conf;

/**
 * What a connection carries, in the categories of <i>Hadoop Acceleration in an OpenFlow-based
 * Cluster</i>, section II, as far as this JVM's own sockets can tell; the controller's policies
 * call them the same. The shuffle is none of them: its sockets are not made by the plug-in.
 */
public enum TrafficCategory {
  /** A client writes a block to the first DataNode of its pipeline. */
  CLIENT_WRITE(Setting.DSCP_CLIENT_WRITE),
  /** A client reads. */
  CLIENT_READ(Setting.DSCP_CLIENT_READ),
  /** A DataNode writes to the next of a pipeline, or copies a replica or reconstructs one. */
  REPLICATION(Setting.DSCP_REPLICATION),
  /** A task reads its input from HDFS. */
  SPLIT(Setting.DSCP_SPLIT),
  /** A task writes its output to HDFS. */
  RESULT(Setting.DSCP_RESULT),
  /** RPC to the NameNode, of DataNodes and clients. */
  NAMENODE(Setting.DSCP_NAMENODE),
  /** RPC to the ResourceManager, of NodeManagers, ApplicationMasters and clients. */
  RESOURCEMANAGER(Setting.DSCP_RESOURCEMANAGER);

  private final Setting setting;

  TrafficCategory(Setting setting) {
    this.setting = setting;
  }

  /**
   * The setting of its code point.
   *
   * @return the setting
   */
  public Setting setting() {
    return setting;
  }

  /**
   * Its name in settings, logs and the controller's policies.
   *
   * @return lower-case words
   */
  public String text() {
    return setting.key().substring(Setting.DSCP.key().length() + 1);
  }
}

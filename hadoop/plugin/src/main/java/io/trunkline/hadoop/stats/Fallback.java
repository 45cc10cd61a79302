package io.trunkline.hadoop.stats;

/** Why an operation does not go by a transport that was to be tried. */
public enum Fallback {
  /** The DataNode does not say that it has the plug-in. */
  NO_PLUGIN("no_plugin", "the DataNode's plug-in does not answer"),
  /** The DataNode has the plug-in but may not use it. */
  NOT_NAMED("not_named", "named data is off on the DataNode"),
  /** The DataNode has the plug-in but does not take data by this transport. */
  NOT_SERVED("not_served", "it is off on the DataNode"),
  /** What the transport needs is not there. */
  UNAVAILABLE("unavailable", "it cannot be used in this process"),
  /** The DataNode's record sends clients to another host. */
  OTHER_HOST("other_host", "the answer for the DataNode names another host"),
  /** The DataNode's plug-in speaks another version. */
  OTHER_VERSION("other_version", "the DataNode's plug-in speaks another version"),
  /** The DataNode's plug-in does not accept connections. */
  PLUGIN_UNREACHABLE("plugin_unreachable", "the DataNode's plug-in does not accept connections"),
  /** Transfers by it to this DataNode, or of this block, or all of them, have failed of late. */
  PLANE_PAUSED("plane_paused", "recent transfers by it have failed"),
  /** The face to the router is down. */
  ROUTER_DOWN("router_down", "the face to the router is down"),
  /** This JVM's forwarder cannot be started. */
  NODE_DOWN("node_down", "the named-data forwarder of this process cannot be started"),
  /** This JVM's forwarder has no room for another writer. */
  NO_ROOM("no_room", "too many blocks are written at once"),
  /** The operation carries a block token, or the DataNode wants one, and not both. */
  BLOCK_TOKEN("block_token", "one side has block tokens and the other one has not"),
  /**
   * Where data is protected, only reads, and writes to several replicas, go with a token by name.
   */
  SECURED_OTHER(
      "secured_other",
      "where data transfer is protected, only reads and writes to several replicas go by name, with"
          + " a block token"),
  /** Stock code does a handshake of its own, as nothing tells it that it need not. */
  NO_RESOLVER("no_resolver", "Hadoop makes a handshake of its own on every connection"),
  /** The connection to the DataNode's plug-in could not be made secure. */
  HANDSHAKE("handshake", "the connection to the DataNode's plug-in could not be made secure"),
  /** The write has checksums that segments cannot carry. */
  CHECKSUM_KIND("checksum_kind", "named data cannot carry its checksums"),
  /** A DataNode's upstream does not write by name. */
  UPSTREAM_PLAIN("upstream_plain", "this DataNode receives the block by another way"),
  /** The replica has no answer under its metadata name. */
  NO_METADATA("no_metadata", "no finalized replica is found by name"),
  /** The replica that answered is another one than was asked for. */
  OTHER_REPLICA("other_replica", "the replica found by name is not the one asked for"),
  /** No DataNode gives the key of the block's segments to who has this token. */
  NO_CONTENT_KEY("no_content_key", "no DataNode gives the block's content key"),
  /** The digests of the replica's segments cannot be had, or it has no checksums. */
  NO_MANIFEST("no_manifest", "the digests of the replica's segments are not found by name"),
  /** Short-circuit reads are configured. */
  SHORT_CIRCUIT("short_circuit", "short-circuit reads are configured"),
  /** A read by name failed on its way. */
  READ_FAILED("read_failed", "a read by name failed"),
  /** A DataNode could not get what was published. */
  WRITE_STALLED("write_stalled", "a DataNode cannot get a packet by name");

  private final String key;
  private final String text;

  Fallback(String key, String text) {
    this.key = key;
    this.text = text;
  }

  /**
   * Whether it concerns this process as a whole, whichever DataNode or block comes first.
   *
   * @return true when one log line says it all
   */
  boolean ofProcess() {
    return this == UNAVAILABLE || this == SECURED_OTHER || this == NO_RESOLVER;
  }

  /**
   * The reason's name in the counters.
   *
   * @return lower-case words
   */
  public String key() {
    return key;
  }

  /**
   * The reason in words.
   *
   * @return words for a log line
   */
  public String text() {
    return text;
  }
}

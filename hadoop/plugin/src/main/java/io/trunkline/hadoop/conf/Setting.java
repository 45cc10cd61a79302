package io.trunkline.hadoop.conf;

/**
 * Every setting of the plug-in, in one place: key, kind, default, range and a line of help. {@link
 * Settings} reads and checks them; {@link SettingsPage} prints the page for operators from them.
 */
public enum Setting {
  /** The transports to try, in order. */
  TRANSPORT(
      "trunkline.transport",
      Kind.TRANSPORTS,
      "ndn,tcp",
      "ndn,tcp or tcp",
      "Transports to try for HDFS data, in order; tcp ends the list, since it is the fallback."),
  /** The router's URI. */
  NDN_FACE(
      "trunkline.ndn.face",
      Kind.FACE_URI,
      "",
      "unix:///path, tcp://host:port, udp://host:port, or empty",
      "Router that this JVM's forwarder connects to; empty: this JVM's own forwarder alone."),
  /** The first components of every name. */
  NDN_ROOT(
      "trunkline.ndn.root",
      Kind.NAME,
      "/hadoop",
      "an NDN name of one component or more",
      "Name that all names of this cluster begin with."),
  /** Data bytes a segment. */
  SEGMENT_BYTES(
      "trunkline.ndn.segment.bytes",
      Kind.BYTES,
      "64512",
      "512 .. 64512, a multiple of 512",
      "Block bytes in one segment; 64512 is what a stock HDFS packet carries.",
      512,
      64512),
  /** Interests in flight of one pull. */
  WINDOW_SEGMENTS(
      "trunkline.ndn.window.segments",
      Kind.COUNT,
      "64",
      "1 .. 4096",
      "Most segments asked for at once by one pull.",
      1,
      4096),
  /** How pulled segments are verified. */
  VERIFY(
      "trunkline.ndn.verify",
      Kind.VERIFICATION,
      "checksums",
      "checksums or digest",
      "What guards a segment on its way and is verified before a byte of it is handed on: the HDFS"
          + " checksums it carries, or a SHA-256 digest of its packet as well, at twenty times the"
          + " cost."),
  /** Content store of the JVM's forwarder. */
  CONTENT_STORE_BYTES(
      "trunkline.ndn.content-store.bytes",
      Kind.BYTES,
      "0",
      "0 .. 1099511627776",
      "Memory of the content store of this JVM's forwarder; caches belong into routers.",
      0,
      1L << 40),
  /** Pending Interest table of the JVM's forwarder. */
  PIT_ENTRIES(
      "trunkline.ndn.pit.entries",
      Kind.COUNT,
      "65536",
      "1024 .. 16777216",
      "Most pending Interests in this JVM's forwarder.",
      1024,
      1 << 24),
  /** Segments a producer keeps. */
  RETAIN_SEGMENTS(
      "trunkline.ndn.retain.segments",
      Kind.COUNT,
      "256",
      "96 .. 65536",
      "Newest segments that the writer of a block keeps answerable; at least what HDFS has in flight.",
      96,
      65536),
  /** Memory of all producers of the JVM. */
  RETAIN_BYTES(
      "trunkline.ndn.retain.bytes",
      Kind.BYTES,
      "536870912",
      "8388608 .. 1099511627776",
      "Memory for the kept segments of all blocks that this JVM writes at once.",
      8L << 20,
      1L << 40),
  /** How long a pull waits for one segment. */
  PULL_TIMEOUT_MS(
      "trunkline.ndn.pull.timeout.ms",
      Kind.MILLIS,
      "15000",
      "500 .. 600000",
      "How long a segment that exists may take before the pull fails and HDFS recovers by TCP.",
      500,
      600_000),
  /** How long discovery and metadata wait. */
  DISCOVERY_TIMEOUT_MS(
      "trunkline.ndn.discovery.timeout.ms",
      Kind.MILLIS,
      "1000",
      "10 .. 60000",
      "How long to ask whether a DataNode or a replica can be had by name before going by TCP.",
      10,
      60_000),
  /** Where the JVM's forwarder listens. */
  NDN_LISTEN(
      "trunkline.ndn.listen",
      Kind.FACE_URIS,
      "",
      "comma-separated unix://, tcp:// or udp:// URIs, or empty",
      "Where this JVM's forwarder accepts faces of others."),
  /** Local address of outgoing sockets. */
  LOCAL_ADDRESS(
      "trunkline.local.address",
      Kind.IP_ADDRESS,
      "",
      "an IP address of this host, or empty",
      "Address that outgoing sockets (HDFS data, RPC and the router's face) are bound to."),
  /** Listener of the DataNode plug-in. */
  DATANODE_ADDRESS(
      "trunkline.datanode.address",
      Kind.HOST_PORT,
      "0.0.0.0:0",
      "address:port, port 0 for any",
      "Where the DataNode plug-in accepts HDFS data connections of Trunkline clients."),
  /** Open replicas of the DataNode's producer. */
  DATANODE_OPEN_REPLICAS(
      "trunkline.datanode.open-replicas",
      Kind.COUNT,
      "256",
      "1 .. 65536",
      "Most replicas whose files a DataNode keeps open to answer reads by name.",
      1,
      65536),
  /** Where the native library lies. */
  NATIVE_LIBRARY(
      "trunkline.native.library",
      Kind.PATH,
      "",
      "absolute path, or empty",
      "Native library to load in place of the one in the jar."),
  /** Where the counters go. */
  STATS_FILE(
      "trunkline.stats.file",
      Kind.PATH,
      "",
      "absolute path, or empty",
      "File that this JVM's counters are written to as JSON; {pid} stands for the process id.");

  /** The prefix of every key; no other program may use it. */
  public static final String PREFIX = "trunkline.";

  /** What a value is. */
  public enum Kind {
    /** Comma-separated transports. */
    TRANSPORTS,
    /** One face URI, or empty. */
    FACE_URI,
    /** Comma-separated face URIs, or empty. */
    FACE_URIS,
    /** An NDN name. */
    NAME,
    /** What segments are verified by. */
    VERIFICATION,
    /** A number of bytes. */
    BYTES,
    /** A number of things. */
    COUNT,
    /** A duration in milliseconds. */
    MILLIS,
    /** A literal IP address, or empty. */
    IP_ADDRESS,
    /** Address and port. */
    HOST_PORT,
    /** An absolute path, or empty. */
    PATH
  }

  private final String key;
  private final Kind kind;
  private final String defaultValue;
  private final String range;
  private final String help;
  private final long min;
  private final long max;

  Setting(String key, Kind kind, String defaultValue, String range, String help) {
    this(key, kind, defaultValue, range, help, 0, 0);
  }

  Setting(
      String key, Kind kind, String defaultValue, String range, String help, long min, long max) {
    this.key = key;
    this.kind = kind;
    this.defaultValue = defaultValue;
    this.range = range;
    this.help = help;
    this.min = min;
    this.max = max;
  }

  /**
   * The Hadoop configuration key.
   *
   * @return the key
   */
  public String key() {
    return key;
  }

  /**
   * What the value is.
   *
   * @return the kind
   */
  public Kind kind() {
    return kind;
  }

  /**
   * The value when the key is not set.
   *
   * @return the default
   */
  public String defaultValue() {
    return defaultValue;
  }

  /**
   * The allowed values, for people.
   *
   * @return the range
   */
  public String range() {
    return range;
  }

  /**
   * One line of help.
   *
   * @return the help
   */
  public String help() {
    return help;
  }

  long min() {
    return min;
  }

  long max() {
    return max;
  }
}

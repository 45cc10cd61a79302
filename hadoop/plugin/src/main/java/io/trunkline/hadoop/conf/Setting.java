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
      "some of ucx, ndn, mirror, tcp",
      "Transports to try for HDFS data, in order; tcp ends the list, since it is the fallback;"
          + " mirror, which serves every connection, stands right before it."),
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
      64512,
      512,
      16 * 64512,
      "Block bytes in one segment, the same in a whole cluster. 64512 is what a stock HDFS packet"
          + " carries; larger ones cost less CPU where packets are as large, and random reads more"
          + " bytes.",
      "a multiple of 512"),
  /** Interests in flight of one pull. */
  WINDOW_SEGMENTS(
      "trunkline.ndn.window.segments",
      Kind.COUNT,
      64,
      1,
      4096,
      "Most segments asked for at once by one pull; of segments above 64512 bytes as many as have so"
          + " many bytes, and 8 at least. Congestion makes it fewer."),
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
      0,
      0,
      1L << 40,
      "Memory of the content store of this JVM's forwarder; caches belong into routers."),
  /** Pending Interest table of the JVM's forwarder. */
  PIT_ENTRIES(
      "trunkline.ndn.pit.entries",
      Kind.COUNT,
      65536,
      1024,
      1 << 24,
      "Most pending Interests in this JVM's forwarder."),
  /** Small packets go along with their records. */
  INLINE_BYTES(
      "trunkline.ndn.inline.bytes",
      Kind.BYTES,
      16384,
      0,
      1 << 20,
      "Packets with fewer data bytes than this, as hflush and hsync make them, go down the control"
          + " connection and not by name; 0: none because it is small. The end of a block whose other"
          + " packets went by its name goes so, too."),
  /** Segments a producer keeps. */
  RETAIN_SEGMENTS(
      "trunkline.ndn.retain.segments",
      Kind.COUNT,
      256,
      96,
      65536,
      "Segments that the writer of a block keeps answerable until the pipeline acknowledges them, of"
          + " segments above 64512 bytes as many as have so many bytes; at least what HDFS has in"
          + " flight."),
  /** Memory of all producers of the JVM. */
  RETAIN_BYTES(
      "trunkline.ndn.retain.bytes",
      Kind.BYTES,
      1073741824,
      8L << 20,
      1L << 40,
      "Memory for the kept segments of all blocks that this JVM writes at once."),
  /** Memory of all pulls of the JVM. */
  PULL_BYTES(
      "trunkline.ndn.pull.bytes",
      Kind.BYTES,
      1L << 30,
      8L << 20,
      1L << 40,
      "Memory for segments that are asked for or wait to be taken, of all blocks that this JVM"
          + " receives and reads at once; the more there are, the smaller are their windows."),
  /** How long a pull waits for one segment. */
  PULL_TIMEOUT_MS(
      "trunkline.ndn.pull.timeout.ms",
      Kind.MILLIS,
      15000,
      500,
      600_000,
      "How long a packet may take, by name for a quarter of it and then on the control connection too, before HDFS recovers the pipeline; of reads, a segment before TCP does it."),
  /** How long discovery and metadata wait. */
  DISCOVERY_TIMEOUT_MS(
      "trunkline.ndn.discovery.timeout.ms",
      Kind.MILLIS,
      1000,
      10,
      60_000,
      "How long to ask whether a DataNode or a replica can be had by name before going by TCP."),
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
      "Where the DataNode plug-in accepts writes by name; 0.0.0.0, or the address by which clients"
          + " know the DataNode, as they go to no other host."),
  /** Open replicas of the DataNode's producer. */
  DATANODE_OPEN_REPLICAS(
      "trunkline.datanode.open-replicas",
      Kind.COUNT,
      256,
      1,
      65536,
      "Most replicas whose files a DataNode keeps open to answer reads by name."),
  /** Listener of the DataNode plug-in for UCX. */
  UCX_ADDRESS(
      "trunkline.ucx.address",
      Kind.HOST_PORT,
      "0.0.0.0:0",
      "address:port, port 0 for any",
      "Where a DataNode accepts HDFS data connections by UCX; 0.0.0.0, or the address by which"
          + " clients know the DataNode. It answers at the UDP port of the number of its stock"
          + " data-transfer port how it is reached."),
  /** How long a DataNode is asked for. */
  UCX_DISCOVERY_TIMEOUT_MS(
      "trunkline.ucx.discovery.timeout.ms",
      Kind.MILLIS,
      1000,
      10,
      60_000,
      "How long to ask whether a DataNode takes data by UCX before going on without."),
  /** Where UCX lies. */
  UCX_LIBRARY_DIR(
      "trunkline.ucx.library.dir",
      Kind.PATH,
      "",
      "absolute path, or empty",
      "Directory of libucp.so.0; empty: where the system's loader looks."),
  /** UCX workers. */
  UCX_WORKERS(
      "trunkline.ucx.workers",
      Kind.COUNT,
      2,
      1,
      64,
      "UCX workers of this JVM at most, one for each I/O thread."),
  /** How they wait. */
  UCX_POLLING(
      "trunkline.ucx.polling",
      Kind.POLLING,
      "wait",
      "wait or busy",
      "How a worker waits for the network; busy only where each worker has a core of its own."),
  /** How long they spin. */
  UCX_SPIN_US(
      "trunkline.ucx.spin.us",
      Kind.COUNT,
      50,
      0,
      10_000,
      "Longest spin of a worker before it sleeps, in microseconds."),
  /** From where on rendezvous is used. */
  UCX_RENDEZVOUS_BYTES(
      "trunkline.ucx.rendezvous.bytes",
      Kind.BYTES,
      64 << 10,
      4 << 10,
      4 << 20,
      "Messages of this size and larger go by rendezvous; at most trunkline.ucx.message.bytes."),
  /** Largest message. */
  UCX_MESSAGE_BYTES(
      "trunkline.ucx.message.bytes",
      Kind.BYTES,
      512 << 10,
      64 << 10,
      16 << 20,
      "Largest message; the size of a large registered buffer."),
  /** Registered memory. */
  UCX_POOL_BYTES(
      "trunkline.ucx.pool.bytes",
      Kind.BYTES,
      256 << 20,
      4 << 20,
      1L << 40,
      "Bound of the memory that is registered with UCX; at least 4 times"
          + " trunkline.ucx.message.bytes."),
  /** Unread bytes of a stream. */
  UCX_WINDOW_BYTES(
      "trunkline.ucx.window.bytes",
      Kind.BYTES,
      2 << 20,
      128 << 10,
      1 << 30,
      "Most bytes that a connection holds unread, for each direction; at least twice"
          + " trunkline.ucx.message.bytes."),
  /** What goes by TCP beside UCX. */
  UCX_SMALL_BYTES(
      "trunkline.ucx.small.bytes",
      Kind.BYTES,
      0,
      0,
      1 << 20,
      "Writes below this go by a TCP connection beside the UCX stream, larger ones by UCX; 0: all by"
          + " UCX. Connections are made so where both client and DataNode set it."),
  /** Streams. */
  UCX_STREAMS_MAX(
      "trunkline.ucx.streams.max",
      Kind.COUNT,
      4096,
      1,
      1 << 20,
      "Most open data connections by UCX of this JVM; with as many endpoints open, further ones of"
          + " peers are refused."),
  /** When what nobody uses is closed. */
  UCX_IDLE_MS(
      "trunkline.ucx.idle.ms",
      Kind.MILLIS,
      60_000,
      100,
      86_400_000,
      "After that an endpoint without connections is closed (by the side that accepted it, when"
          + " trunkline.ucx.connect.ms have passed as well), and free buffers are given up."),
  /** Set-up of an endpoint. */
  UCX_CONNECT_MS(
      "trunkline.ucx.connect.ms",
      Kind.MILLIS,
      5_000,
      10,
      600_000,
      "Longest set-up of an endpoint or a connection."),
  /** How often a sleeping worker looks. */
  UCX_WAKE_CHECK_MS(
      "trunkline.ucx.wake.check.ms",
      Kind.MILLIS,
      100,
      1,
      10_000,
      "A sleeping worker looks at the network that often even if UCX does not wake it; 5 over"
          + " Soft-RoCE."),
  /** Transports of UCX. */
  UCX_TLS(
      "trunkline.ucx.tls",
      Kind.WORDS,
      "",
      "comma-separated words as in UCX_TLS, or empty",
      "Transports that UCX may use; empty: UCX chooses. The environment's UCX_TLS goes before it."),
  /** Whom DataNodes tell of pipelines. */
  MIRROR_CONTROLLER(
      "trunkline.mirror.controller",
      Kind.URL,
      "",
      "http://host:port or https://host:port, or empty",
      "REST interface of the controller that DataNodes report the connections of pipelines to, so"
          + " that switches copy a block's segments to all replicas; needed where trunkline.transport"
          + " has mirror."),
  /** Its token. */
  MIRROR_TOKEN_FILE(
      "trunkline.mirror.token.file",
      Kind.PATH,
      "",
      "absolute path, or empty",
      "File with the controller's bearer token, where it wants one; nobody but the DataNode's user"
          + " may read it."),
  /** What its certificate is checked against. */
  MIRROR_CA_FILE(
      "trunkline.mirror.ca.file",
      Kind.PATH,
      "",
      "absolute path, or empty",
      "Certificates in PEM that an https controller is checked against; empty: those of the JVM."),
  /** How long arming may take. */
  MIRROR_WAIT_MS(
      "trunkline.mirror.wait.ms",
      Kind.MILLIS,
      20,
      1,
      1000,
      "How long the controller may take to arm a pipeline, once all of its connections are known,"
          + " before it is counted as late; no write waits for it, and copies that begin later are"
          + " taken all the same."),
  /** Whether sockets are marked. */
  DSCP(
      "trunkline.dscp",
      Kind.SWITCH,
      "off",
      "off or on",
      "Whether the sockets that this JVM opens mark what they send by its category, as a"
          + " differentiated services code point (IP header), so that switches can tell categories"
          + " apart."),
  /** Mark of a client's write. */
  DSCP_CLIENT_WRITE(
      "trunkline.dscp.client-write",
      Kind.CODE_POINT,
      "AF21",
      CodePoint.RANGE,
      "Mark of what a client writes, toward the first DataNode."),
  /** Mark of a client's read. */
  DSCP_CLIENT_READ(
      "trunkline.dscp.client-read",
      Kind.CODE_POINT,
      "AF31",
      CodePoint.RANGE,
      "Mark of a client's reads."),
  /** Mark of replication. */
  DSCP_REPLICATION(
      "trunkline.dscp.replication",
      Kind.CODE_POINT,
      "CS1",
      CodePoint.RANGE,
      "Mark of what a DataNode sends to the next of a pipeline, and of replicas that are copied or"
          + " reconstructed."),
  /** Mark of a task's input. */
  DSCP_SPLIT(
      "trunkline.dscp.split",
      Kind.CODE_POINT,
      "AF32",
      CodePoint.RANGE,
      "Mark of what a task of MapReduce, Spark or Tez reads from HDFS."),
  /** Mark of a task's output. */
  DSCP_RESULT(
      "trunkline.dscp.result",
      Kind.CODE_POINT,
      "AF22",
      CodePoint.RANGE,
      "Mark of what such a task writes to HDFS, toward the first DataNode."),
  /** Mark of NameNode RPC. */
  DSCP_NAMENODE(
      "trunkline.dscp.namenode",
      Kind.CODE_POINT,
      "CS3",
      CodePoint.RANGE,
      "Mark of RPC to the NameNode, of DataNodes and clients."),
  /** Mark of ResourceManager RPC. */
  DSCP_RESOURCEMANAGER(
      "trunkline.dscp.resourcemanager",
      Kind.CODE_POINT,
      "CS2",
      CodePoint.RANGE,
      "Mark of RPC to the ResourceManager, of NodeManagers, ApplicationMasters and clients."),
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
    /** URL of a server, or empty. */
    URL,
    /** An absolute path, or empty. */
    PATH,
    /** How workers wait. */
    POLLING,
    /** On or off. */
    SWITCH,
    /** A differentiated services code point. */
    CODE_POINT,
    /** Comma-separated words, or empty. */
    WORDS
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

  /** A number. */
  Setting(String key, Kind kind, long defaultValue, long min, long max, String help) {
    this(key, kind, defaultValue, min, max, help, "");
  }

  /** A number of which more is asked than to lie between two others. */
  Setting(
      String key, Kind kind, long defaultValue, long min, long max, String help, String further) {
    this(
        key,
        kind,
        Long.toString(defaultValue),
        min + " .. " + max + (further.isEmpty() ? "" : ", " + further),
        help,
        min,
        max);
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

  /**
   * Reads and checks the value of a number.
   *
   * @param value as it was set
   * @return the number
   * @throws SettingsException when it is none, or out of range
   */
  long number(String value) {
    long number;
    try {
      number = Long.parseLong(value);
    } catch (NumberFormatException e) {
      throw wrong(value, "no whole number");
    }
    return checked(number);
  }

  /**
   * Checks a number.
   *
   * @param number of this setting
   * @return the number
   * @throws SettingsException when it is out of range
   */
  long checked(long number) {
    if (number < min || number > max) {
      throw wrong(Long.toString(number), "out of range");
    }
    return number;
  }

  /**
   * The number when the key is not set.
   *
   * @return the default of a setting that is a number
   */
  public long defaultNumber() {
    return Long.parseLong(defaultValue);
  }

  private SettingsException wrong(String value, String cause) {
    return wrong(value, cause, "use " + range);
  }

  /** A refusal of a value: what is wrong with it, and the fix. */
  SettingsException wrong(String value, String cause, String fix) {
    return new SettingsException("setting " + key + " = \"" + value + "\": " + cause + "; " + fix);
  }
}

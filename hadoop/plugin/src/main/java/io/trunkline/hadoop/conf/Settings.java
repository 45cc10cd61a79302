package io.trunkline.hadoop.conf;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalInt;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;

/**
 * The plug-in's settings of one Hadoop configuration, read and checked as a whole: a wrong one is
 * refused with its name, the value and the fix, before anything is started. Two equal {@code
 * Settings} stand for one plane, so that they share one embedded forwarder.
 */
public final class Settings {
  private static final String TRANSPORTS_HELP =
      "use ndn,tcp to try named data first, ucx,tcp to try UCX first, mirror,tcp to have switches"
          + " copy block writes, or tcp for stock transfer";

  /** Settings that count segments count those of this size, or smaller ones. */
  private static final int COUNTED_SEGMENT_BYTES = 64512;

  /** So many larger ones there are at least. */
  private static final int LEAST_LARGE_SEGMENTS = 8;

  private final Map<Setting, String> values;
  private final List<String> transports;
  private final String root;
  private final List<String> listen;
  private final InetAddress localAddress;
  private final InetSocketAddress dataNodeAddress;
  private final InetSocketAddress ucxAddress;
  private final UcxSettings ucx;
  private final MirrorSettings mirror;

  private Settings(Map<Setting, String> values) {
    this.values = values;
    this.transports = transports(values.get(Setting.TRANSPORT));
    this.root = NameSyntax.checkRoot(Setting.NDN_ROOT.key(), values.get(Setting.NDN_ROOT));
    String face = values.get(Setting.NDN_FACE);
    if (!face.isEmpty()) {
      FaceUriSyntax.check(Setting.NDN_FACE.key(), face);
    }
    this.listen = list(values.get(Setting.NDN_LISTEN));
    listen.forEach(uri -> FaceUriSyntax.check(Setting.NDN_LISTEN.key(), uri));
    String local = values.get(Setting.LOCAL_ADDRESS);
    this.localAddress = local.isEmpty() ? null : literalAddress(Setting.LOCAL_ADDRESS, local);
    this.dataNodeAddress = hostPort(Setting.DATANODE_ADDRESS, values);
    String verify = values.get(Setting.VERIFY);
    if (!verify.equals("checksums") && !verify.equals("digest")) {
      throw Setting.VERIFY.wrong(verify, "no way to verify", "use " + Setting.VERIFY.range());
    }
    this.ucxAddress = hostPort(Setting.UCX_ADDRESS, values);
    for (Setting setting : Setting.values()) {
      switch (setting.kind()) {
        case BYTES, COUNT, MILLIS -> number(setting);
        case PATH -> checkPath(setting, values.get(setting));
        case SWITCH -> checkSwitch(setting, values.get(setting));
        case CODE_POINT -> CodePoint.parse(setting, values.get(setting));
        default -> {
          // checked above
        }
      }
    }
    if (number(Setting.SEGMENT_BYTES) % 512 != 0) {
      throw Setting.SEGMENT_BYTES.wrong(
          values.get(Setting.SEGMENT_BYTES),
          "no multiple of 512",
          "use 64512, or another multiple of the checksum chunk");
    }
    this.ucx = ucxSettings();
    this.mirror = mirrorSettings();
  }

  private MirrorSettings mirrorSettings() {
    String controller = values.get(Setting.MIRROR_CONTROLLER);
    if (controller.isEmpty() && transports.contains(TransportNames.MIRROR)) {
      throw Setting.MIRROR_CONTROLLER.wrong(
          controller,
          "missing, and " + Setting.TRANSPORT.key() + " has mirror",
          "write the URL of the controller, as http://192.0.2.1:8181");
    }
    return new MirrorSettings(
        MirrorSettings.controller(controller),
        values.get(Setting.MIRROR_TOKEN_FILE),
        values.get(Setting.MIRROR_CA_FILE),
        (int) number(Setting.MIRROR_WAIT_MS));
  }

  private UcxSettings ucxSettings() {
    String polling = values.get(Setting.UCX_POLLING);
    if (!polling.equals("wait") && !polling.equals("busy")) {
      throw Setting.UCX_POLLING.wrong(polling, "no way to wait", "use wait or busy");
    }
    String tls = values.get(Setting.UCX_TLS);
    if (!tls.matches("[A-Za-z0-9_,^:\\\\]*")) {
      throw Setting.UCX_TLS.wrong(tls, "no list of transports", "write it as rc,sm,tcp");
    }
    UcxSettings.Builder builder =
        UcxSettings.builder()
            .libraryDir(values.get(Setting.UCX_LIBRARY_DIR))
            .polling(polling.equals("busy") ? UcxSettings.Polling.BUSY : UcxSettings.Polling.WAIT)
            .tls(tls);
    for (Setting number : UcxSettings.NUMBERS) {
      builder.set(number, number(number));
    }
    return builder.build();
  }

  /**
   * Reads and checks all settings.
   *
   * @param conf Hadoop's configuration
   * @return the settings
   * @throws SettingsException when a key under {@code trunkline.} is unknown or a value is wrong
   */
  public static Settings from(Configuration conf) {
    refuseUnknown(conf);
    Map<Setting, String> values = new EnumMap<>(Setting.class);
    for (Setting setting : Setting.values()) {
      values.put(setting, conf.getTrimmed(setting.key(), setting.defaultValue()));
    }
    return new Settings(values);
  }

  private static void refuseUnknown(Configuration conf) {
    for (Map.Entry<String, String> entry : conf) {
      String key = entry.getKey();
      if (key.startsWith(Setting.PREFIX) && !known(key)) {
        Setting nearest = Nearest.to(key);
        throw new SettingsException(
            "setting "
                + key
                + ": no such setting; did you mean "
                + nearest.key()
                + "? Rename it or take it out");
      }
    }
  }

  private static boolean known(String key) {
    for (Setting setting : Setting.values()) {
      if (setting.key().equals(key)) {
        return true;
      }
    }
    return false;
  }

  private static List<String> transports(String value) {
    List<String> transports = list(value);
    for (String transport : transports) {
      if (!TransportNames.ALL.contains(transport)) {
        throw Setting.TRANSPORT.wrong(value, "no transport is named " + transport, TRANSPORTS_HELP);
      }
    }
    if (transports.isEmpty() || transports.indexOf(TransportNames.TCP) != transports.size() - 1) {
      throw Setting.TRANSPORT.wrong(value, "tcp must stand at the end, once", TRANSPORTS_HELP);
    }
    if (Set.copyOf(transports).size() != transports.size()) {
      throw Setting.TRANSPORT.wrong(value, "one transport stands there twice", TRANSPORTS_HELP);
    }
    int mirror = transports.indexOf(TransportNames.MIRROR);
    if (mirror >= 0 && mirror != transports.size() - 2) {
      throw Setting.TRANSPORT.wrong(
          value,
          "mirror serves every connection, so that none after it is tried",
          "put it right before tcp");
    }
    return transports;
  }

  private static List<String> list(String value) {
    List<String> parts = new ArrayList<>();
    for (String part : value.split(",")) {
      if (!part.isBlank()) {
        parts.add(part.trim());
      }
    }
    return List.copyOf(parts);
  }

  private static InetAddress literalAddress(Setting setting, String value) {
    boolean literal = value.indexOf(':') >= 0 || value.matches("[0-9]+(\\.[0-9]+){3}");
    try {
      if (literal) {
        return InetAddress.getByName(value);
      }
    } catch (UnknownHostException e) {
      // said below
    }
    throw setting.wrong(value, "no IP address", "write it in numbers, as 192.0.2.7");
  }

  private static InetSocketAddress hostPort(Setting setting, Map<Setting, String> values) {
    String value = values.get(setting);
    int colon = value.lastIndexOf(':');
    try {
      int port = colon < 1 ? -1 : Integer.parseInt(value.substring(colon + 1));
      if (port >= 0 && port <= 65535) {
        String host = value.substring(0, colon).replaceAll("^\\[(.*)]$", "$1");
        return new InetSocketAddress(literalAddress(setting, host), port);
      }
    } catch (NumberFormatException e) {
      // said below
    }
    throw setting.wrong(value, "not address:port", "write it as 0.0.0.0:0 or 192.0.2.7:9868");
  }

  private static void checkPath(Setting setting, String value) {
    if (!value.isEmpty() && !value.startsWith("/")) {
      throw setting.wrong(value, "not an absolute path", "begin it with /");
    }
  }

  private static void checkSwitch(Setting setting, String value) {
    if (!value.equals("on") && !value.equals("off")) {
      throw setting.wrong(value, "neither on nor off", "use on or off");
    }
  }

  private long number(Setting setting) {
    return setting.number(values.get(setting));
  }

  /**
   * Whether HDFS data is to go by name where it can.
   *
   * @return true when {@code ndn} stands in the list of transports
   */
  public boolean ndn() {
    return transports.contains(TransportNames.NDN);
  }

  /**
   * The transports to try for HDFS data.
   *
   * @return their names in order, tcp last
   */
  public List<String> transports() {
    return transports;
  }

  /**
   * The transport that is tried when one does not serve.
   *
   * @param transport one of {@link #transports}
   * @return the name of the next, tcp for the last
   */
  public String transportAfter(String transport) {
    int next = transports.indexOf(transport) + 1;
    return transports.get(Math.min(next, transports.size() - 1));
  }

  /**
   * URI of the router.
   *
   * @return the URI, empty when there is none
   */
  public String face() {
    return values.get(Setting.NDN_FACE);
  }

  /**
   * The name that all names begin with, without a slash at the end.
   *
   * @return the name's URI
   */
  public String root() {
    return root;
  }

  /**
   * Data bytes a segment.
   *
   * @return bytes
   */
  public int segmentBytes() {
    return (int) number(Setting.SEGMENT_BYTES);
  }

  /**
   * Most Interests in flight of one pull.
   *
   * @param segmentBytes data bytes a segment
   * @return segments
   */
  public int windowSegments(int segmentBytes) {
    return ofBytes(Setting.WINDOW_SEGMENTS, segmentBytes);
  }

  /** So many segments as a setting says, where they are large as many as have so many bytes. */
  private int ofBytes(Setting setting, int segmentBytes) {
    int count = (int) number(setting);
    if (segmentBytes <= COUNTED_SEGMENT_BYTES) {
      return count;
    }
    long scaled = (long) count * COUNTED_SEGMENT_BYTES / segmentBytes;
    return (int) Math.min(count, Math.max(LEAST_LARGE_SEGMENTS, scaled));
  }

  /**
   * What pulled segments are verified by.
   *
   * @return {@code checksums} or {@code digest}
   */
  public String verify() {
    return values.get(Setting.VERIFY);
  }

  /**
   * Memory of the content store.
   *
   * @return bytes
   */
  public long contentStoreBytes() {
    return number(Setting.CONTENT_STORE_BYTES);
  }

  /**
   * Most pending Interests.
   *
   * @return entries
   */
  public int pitEntries() {
    return (int) number(Setting.PIT_ENTRIES);
  }

  /**
   * Fewer data bytes than these do not go by name.
   *
   * @return bytes
   */
  public int inlineBytes() {
    return (int) number(Setting.INLINE_BYTES);
  }

  /**
   * Segments that the writer of a block keeps.
   *
   * @param segmentBytes data bytes a segment
   * @return segments
   */
  public int retainSegments(int segmentBytes) {
    return ofBytes(Setting.RETAIN_SEGMENTS, segmentBytes);
  }

  /**
   * Memory of all kept segments.
   *
   * @return bytes
   */
  public long retainBytes() {
    return number(Setting.RETAIN_BYTES);
  }

  /**
   * Memory of all segments that are pulled.
   *
   * @return bytes
   */
  public long pullBytes() {
    return number(Setting.PULL_BYTES);
  }

  /**
   * How long a segment that exists may take.
   *
   * @return milliseconds
   */
  public int pullTimeoutMs() {
    return (int) number(Setting.PULL_TIMEOUT_MS);
  }

  /**
   * How long discovery and metadata wait.
   *
   * @return milliseconds
   */
  public int discoveryTimeoutMs() {
    return (int) number(Setting.DISCOVERY_TIMEOUT_MS);
  }

  /**
   * Where the JVM's forwarder listens.
   *
   * @return face URIs
   */
  public List<String> listen() {
    return listen;
  }

  /**
   * Address that outgoing sockets are bound to.
   *
   * @return the address, or null for the system's choice
   */
  public InetAddress localAddress() {
    return localAddress;
  }

  /**
   * Where the DataNode plug-in listens.
   *
   * @return the address
   */
  public InetSocketAddress dataNodeAddress() {
    return dataNodeAddress;
  }

  /**
   * Where a DataNode listens for UCX.
   *
   * @return the address
   */
  public InetSocketAddress ucxAddress() {
    return ucxAddress;
  }

  /**
   * How long to ask whether a DataNode takes data by UCX.
   *
   * @return milliseconds
   */
  public int ucxDiscoveryTimeoutMs() {
    return (int) number(Setting.UCX_DISCOVERY_TIMEOUT_MS);
  }

  /**
   * Most bytes that a connection by UCX holds unread, for each direction.
   *
   * @return bytes
   */
  public int ucxWindowBytes() {
    return (int) number(Setting.UCX_WINDOW_BYTES);
  }

  /**
   * Writes below go by TCP beside UCX.
   *
   * @return bytes, 0 when all go by UCX
   */
  public int ucxSmallBytes() {
    return (int) number(Setting.UCX_SMALL_BYTES);
  }

  /**
   * The settings of UCX itself; equal ones share workers, endpoints and memory.
   *
   * @return them
   */
  public UcxSettings ucx() {
    return ucx;
  }

  /**
   * How the connections of pipelines are reported.
   *
   * @return the settings
   */
  public MirrorSettings mirror() {
    return mirror;
  }

  /**
   * Most replicas that a DataNode keeps open.
   *
   * @return replicas
   */
  public int dataNodeOpenReplicas() {
    return (int) number(Setting.DATANODE_OPEN_REPLICAS);
  }

  /**
   * Whether connections are marked.
   *
   * @return true when they are
   */
  public boolean marks() {
    return values.get(Setting.DSCP).equals("on");
  }

  /**
   * How connections of a category are marked.
   *
   * @param category the category
   * @return the differentiated services code point, 0 to 63; empty when sockets are not marked
   */
  public OptionalInt dscp(TrafficCategory category) {
    return marks()
        ? OptionalInt.of(CodePoint.parse(category.setting(), values.get(category.setting())))
        : OptionalInt.empty();
  }

  /**
   * Path of the native library.
   *
   * @return the path, empty for the one in the jar
   */
  public String nativeLibrary() {
    return values.get(Setting.NATIVE_LIBRARY);
  }

  /**
   * File of the counters.
   *
   * @return the path with the process id put in, empty for none
   */
  public String statsFile() {
    return values
        .get(Setting.STATS_FILE)
        .replace("{pid}", Long.toString(ProcessHandle.current().pid()));
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof Settings that && values.equals(that.values);
  }

  @Override
  public int hashCode() {
    return Objects.hash(values);
  }

  @Override
  public String toString() {
    return values.toString();
  }
}

package io.trunkline.hadoop.ndn;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;

/** The URIs of the names that the plug-in uses, all below one root. */
public final class Names {
  private static final HexFormat PERCENT = HexFormat.ofDelimiter("%").withUpperCase();

  private final String root;

  /**
   * Names below a root.
   *
   * @param root URI without a slash at the end
   */
  public Names(String root) {
    this.root = root;
  }

  /**
   * What all blocks' names begin with.
   *
   * @return {@code /<root>/blocks}
   */
  public String blocks() {
    return root + "/blocks";
  }

  /**
   * A block at one generation stamp; its segments lie below.
   *
   * @param pool block pool
   * @param block block id
   * @param genstamp generation stamp
   * @return {@code /<root>/blocks/<pool>/<block>/v=<genstamp>}
   */
  public String version(String pool, long block, long genstamp) {
    return blocks() + '/' + component(pool) + '/' + block + "/v=" + genstamp;
  }

  /**
   * What is known of a finalized block.
   *
   * @param pool block pool
   * @param block block id
   * @return {@code /<root>/blocks/<pool>/<block>/32=metadata}
   */
  public String metadata(String pool, long block) {
    return blocks() + '/' + component(pool) + '/' + block + "/32=metadata";
  }

  /**
   * Where a DataNode says how it is reached: under its IP address, and under its host name where
   * the NameNode gives out host names, since clients outside may know it under another address.
   *
   * @param transfer its data-transfer address, as stock code connects to it
   * @return {@code /<root>/datanodes/<ip>/<port>}, and the same with the host name if there is one
   */
  public List<String> dataNode(InetSocketAddress transfer) {
    String ip = transfer.getAddress().getHostAddress();
    String byAddress = dataNode(ip, transfer.getPort());
    String byName = dataNode(transfer.getHostString(), transfer.getPort());
    return byName.equals(byAddress) ? List.of(byAddress) : List.of(byAddress, byName);
  }

  /**
   * Where a DataNode says how it is reached.
   *
   * @param host its IP address or host name, as the NameNode gives it out
   * @param port its data-transfer port
   * @return {@code /<root>/datanodes/<host>/<port>}
   */
  public String dataNode(String host, int port) {
    return root + "/datanodes/" + component(host.toLowerCase(Locale.ROOT)) + '/' + port;
  }

  /**
   * What the segments of a write lie below.
   *
   * @param version the block's versioned name
   * @param key the key that they are sealed with, null when they are not
   * @return {@code <version>}, or {@code <version>/32=<key id>}
   * @throws IOException when it is no key
   */
  public static String segments(String version, byte[] key) throws IOException {
    return key == null ? version : sealed(version, NativeSecurity.keyId(key));
  }

  /**
   * What segments lie below that are sealed.
   *
   * @param version the block's versioned name
   * @param keyId names the key
   * @return {@code <version>/32=<key id>}
   */
  public static String sealed(String version, byte[] keyId) {
    return version + "/32=%" + PERCENT.formatHex(keyId);
  }

  /**
   * The packets of one writer that are no whole segments of the block.
   *
   * @param version what the write's segments lie below
   * @param nonce tells writers apart
   * @return {@code <version>/32=stream/<nonce>}
   */
  public static String stream(String version, long nonce) {
    byte[] bytes = ByteBuffer.allocate(Long.BYTES).putLong(nonce).array();
    return version + "/32=stream/%" + PERCENT.formatHex(bytes);
  }

  /** Escapes what may not stand in a component. */
  private static String component(String text) {
    StringBuilder escaped = new StringBuilder();
    for (byte b : text.getBytes(StandardCharsets.UTF_8)) {
      char c = (char) (b & 0xFF);
      boolean plain =
          c >= 'a' && c <= 'z'
              || c >= 'A' && c <= 'Z'
              || c >= '0' && c <= '9'
              || "._~-".indexOf(c) >= 0;
      if (plain) {
        escaped.append(c);
      } else {
        escaped.append('%').append(PERCENT.toHexDigits(b));
      }
    }
    return escaped.toString();
  }
}

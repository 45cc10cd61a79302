package io.trunkline.hadoop;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.conf.TrafficCategory;
import io.trunkline.hadoop.mark.Opener;
import io.trunkline.hadoop.mark.SocketMark;
import io.trunkline.hadoop.stats.StatsFile;
import io.trunkline.hadoop.transport.LateChannelSocket;
import io.trunkline.hadoop.transport.TransportChain;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.Objects;
import javax.net.SocketFactory;
import org.apache.hadoop.conf.Configurable;
import org.apache.hadoop.conf.Configuration;

/**
 * Hadoop's sockets, for {@code hadoop.rpc.socket.factory.class.default}. HDFS data connections go
 * by the transports of {@code trunkline.transport}; all others, RPC included, are stock. With
 * {@code trunkline.dscp} each carries the mark of its category.
 *
 * <p>Data and RPC sockets come out of one factory. They are told apart by who asks: HDFS's data
 * streams are opened from classes of {@code org.apache.hadoop.hdfs}, RPC connections from {@code
 * org.apache.hadoop.ipc}. Ports would not do: every one can be configured, and is chosen by the
 * system in tests.
 */
public final class TrunklineSocketFactory extends SocketFactory implements Configurable {
  private static final StackWalker CALLERS =
      StackWalker.getInstance(StackWalker.Option.RETAIN_CLASS_REFERENCE);
  private static final String HDFS = "org.apache.hadoop.hdfs.";
  private static final String RPC = "org.apache.hadoop.ipc.";

  private Configuration conf;
  private Settings settings;
  private TransportChain transports;

  /** Made by Hadoop, which calls {@link #setConf} next. */
  public TrunklineSocketFactory() {}

  @Override
  public void setConf(Configuration configuration) {
    conf = configuration;
    settings = Settings.from(configuration);
    transports = Transports.of(settings, configuration);
    StatsFile.changed(settings.statsFile());
  }

  @Override
  public Configuration getConf() {
    return conf;
  }

  @Override
  public Socket createSocket() throws IOException {
    if (settings == null) {
      return new LateChannelSocket(null, null, SocketMark.NONE);
    }
    String opener = CALLERS.getCallerClass().getName();
    boolean data = opener.startsWith(HDFS);
    return new LateChannelSocket(
        data ? transports : null, settings.localAddress(), mark(data, opener));
  }

  private SocketMark mark(boolean data, String opener) {
    if (data) {
      return SocketMark.of(settings, Opener.ofData(opener));
    }
    if (!settings.marks() || !opener.startsWith(RPC)) {
      return SocketMark.NONE;
    }
    TrafficCategory category =
        CALLERS.walk(frames -> Opener.ofRpc(frames.map(StackWalker.StackFrame::getClassName)));
    return SocketMark.of(settings, category);
  }

  @Override
  public Socket createSocket(String host, int port) throws IOException {
    Socket socket = createSocket();
    socket.connect(new InetSocketAddress(host, port));
    return socket;
  }

  @Override
  public Socket createSocket(String host, int port, InetAddress local, int localPort)
      throws IOException {
    Socket socket = createSocket();
    socket.bind(new InetSocketAddress(local, localPort));
    socket.connect(new InetSocketAddress(host, port));
    return socket;
  }

  @Override
  public Socket createSocket(InetAddress host, int port) throws IOException {
    Socket socket = createSocket();
    socket.connect(new InetSocketAddress(host, port));
    return socket;
  }

  @Override
  public Socket createSocket(InetAddress host, int port, InetAddress local, int localPort)
      throws IOException {
    Socket socket = createSocket();
    socket.bind(new InetSocketAddress(local, localPort));
    socket.connect(new InetSocketAddress(host, port));
    return socket;
  }

  /** Equal factories share RPC connections, so equal means equal settings. */
  @Override
  public boolean equals(Object other) {
    return other instanceof TrunklineSocketFactory that && Objects.equals(settings, that.settings);
  }

  @Override
  public int hashCode() {
    return Objects.hashCode(settings);
  }
}

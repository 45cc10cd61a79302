package io.trunkline.hadoop.mirror;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.conf.TransportNames;
import io.trunkline.hadoop.library.NativeLibrary;
import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.tap.TapChannel;
import io.trunkline.hadoop.transport.Dial;
import io.trunkline.hadoop.transport.NotServed;
import io.trunkline.hadoop.transport.Transport;
import io.trunkline.hadoop.transport.XceiverStarter;
import java.io.IOException;
import java.nio.channels.SocketChannel;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Mirrored replication (TCP-MR): stock TCP to the stock port, whose segments switches copy to all
 * replicas of a block. What a DataNode does for that is to tell a controller which connections make
 * up a pipeline; programs at the hosts' network interfaces do the rest. All other connections are
 * stock TCP and no more.
 */
public final class MirrorTransport implements Transport {
  private static final Logger LOG = LoggerFactory.getLogger(MirrorTransport.class);

  private final Settings settings;

  /**
   * The transport.
   *
   * @param settings the settings
   */
  public MirrorTransport(Settings settings) {
    this.settings = settings;
  }

  @Override
  public String name() {
    return TransportNames.MIRROR;
  }

  @Override
  public SocketChannel open(Dial dial) throws NotServed, IOException {
    Upstream upstream = Upstream.ofThisThread();
    if (upstream == null) {
      return dial.tcp(dial.dataNode(), dial.timeoutMs());
    }
    Reports reports = reports();
    SocketChannel stock = dial.tcp(dial.dataNode(), dial.timeoutMs());
    return new TapChannel(dial.socket(), stock, new MirrorWrites(upstream, reports));
  }

  private Reports reports() throws NotServed {
    try {
      return Reports.of(settings);
    } catch (IOException e) {
      throw new NotServed(Fallback.UNAVAILABLE, e.getMessage());
    }
  }

  /** The stock port is the DataNode's own; what can be wrong is told now rather than at a write. */
  @Override
  public AutoCloseable serve(DataNode dataNode, XceiverStarter xceivers) throws IOException {
    Upstream.check();
    Reports.of(settings);
    loadLibrary();
    return () -> {};
  }

  /** Without it blocks are mirrored all the same. */
  private void loadLibrary() {
    try {
      NativeLibrary.load(settings.nativeLibrary());
    } catch (IOException e) {
      LOG.warn("mirror: blocks are not read by whole packets, which takes more of processors", e);
    }
  }
}

package io.trunkline.hadoop.ucx.hdfs;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.conf.TransportNames;
import io.trunkline.hadoop.conf.UcxSettings;
import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.StatsFile;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.transport.DataNodeRecord;
import io.trunkline.hadoop.transport.Dial;
import io.trunkline.hadoop.transport.Discovery;
import io.trunkline.hadoop.transport.NotServed;
import io.trunkline.hadoop.transport.PluginDialer;
import io.trunkline.hadoop.transport.RecordQuestion;
import io.trunkline.hadoop.transport.Transport;
import io.trunkline.hadoop.transport.XceiverStarter;
import io.trunkline.hadoop.ucx.BodiesChannel;
import io.trunkline.hadoop.ucx.Service;
import io.trunkline.hadoop.ucx.TimedChannel;
import io.trunkline.hadoop.ucx.UcxChannel;
import io.trunkline.hadoop.ucx.UcxNode;
import io.trunkline.hadoop.ucx.UcxUnavailableException;
import io.trunkline.hadoop.wire.FirstOp;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hdfs.protocol.datatransfer.Op;
import org.apache.hadoop.hdfs.server.datanode.DataNode;

/**
 * UCX: verbs where there is a NIC for them, shared memory and TCP where there is none. The whole
 * connection, header, packets and acknowledgements, is one byte stream over an endpoint that is
 * made once for each pair of processes; SASL and block tokens pass through it as through TCP.
 */
public final class UcxTransport implements Transport {
  /** Acknowledgements of a stream in flow come far sooner. */
  private static final long SHORT_WAIT_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

  /** Who was found is known to all clients of the JVM that ask in the same way. */
  private static final ConcurrentHashMap<Integer, Discovery> DISCOVERIES =
      new ConcurrentHashMap<>();

  /** Likewise who has not been served well. */
  private static final ConcurrentHashMap<UcxSettings, PeerHealth> HEALTH =
      new ConcurrentHashMap<>();

  private final Settings settings;

  /**
   * The transport.
   *
   * @param settings the settings
   */
  public UcxTransport(Settings settings) {
    this.settings = settings;
  }

  @Override
  public String name() {
    return TransportNames.UCX;
  }

  /**
   * Whether UCX can be used in this JVM.
   *
   * @param settings the settings
   * @return false when its library is missing or of a wrong version
   */
  public static boolean available(Settings settings) {
    return UcxNodes.unavailable(settings.ucx()).isEmpty();
  }

  @Override
  public SocketChannel open(Dial dial) throws NotServed, IOException {
    String reason = UcxNodes.unavailable(settings.ucx());
    if (!reason.isEmpty()) {
      throw new NotServed(Fallback.UNAVAILABLE, reason);
    }
    PeerHealth health =
        HEALTH.computeIfAbsent(settings.ucx(), ucx -> new PeerHealth(System::nanoTime));
    health.check(dial.peer());
    Discovery discovery =
        DISCOVERIES.computeIfAbsent(
            settings.ucxDiscoveryTimeoutMs(),
            timeoutMs ->
                new Discovery(
                    new RecordQuestion(TransportNames.UCX, timeoutMs),
                    UcxNode.PROTOCOL_VERSION,
                    System::nanoTime));
    PluginDialer dialer =
        new PluginDialer(
            discovery, Fallback.NOT_SERVED, settings.ucx().connectMs(), System::nanoTime);
    try (UcxNodes.Use use = UcxNodes.acquire(settings.ucx())) {
      return dialer.connect(
          dial,
          (plugin, limitMs) -> {
            DataNodeRecord.Split split = discovery.route(dial.dataNode()).split();
            TimedChannel channel =
                settings.ucxSmallBytes() == 0 || split == null
                    ? connect(use, plugin, limitMs, dial.peer(), health)
                    : connectSplit(use, plugin.getAddress(), split, limitMs, dial, health);
            channel.onFirstWrite(this::count);
            channel.setShortWait(SHORT_WAIT_NANOS);
            return channel;
          });
    } catch (UcxUnavailableException e) {
      throw new NotServed(Fallback.UNAVAILABLE, e.getMessage());
    }
  }

  private UcxChannel connect(
      UcxNodes.Use use, InetSocketAddress plugin, int limitMs, String peer, PeerHealth health)
      throws IOException {
    UcxChannel channel;
    try {
      channel = use.node().connect(plugin, limitMs);
    } catch (SocketTimeoutException e) {
      health.ended(peer, Service.SILENT, e.getMessage());
      throw e;
    }
    channel.onClose((service, why) -> health.ended(peer, service, why));
    return channel;
  }

  /** Both at one go: nobody waits for the DataNode to find them one. */
  private BodiesChannel connectSplit(
      UcxNodes.Use use,
      InetAddress host,
      DataNodeRecord.Split split,
      int limitMs,
      Dial dial,
      PeerHealth health)
      throws IOException {
    long began = System.nanoTime();
    UcxChannel ucx =
        connect(use, new InetSocketAddress(host, split.port()), limitMs, dial.peer(), health);
    boolean connected = false;
    try {
      long tookMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - began);
      int leftMs = (int) Math.max(1, limitMs - tookMs);
      SocketChannel tcp = dial.tcp(new InetSocketAddress(host, split.tcpPort()), leftMs);
      BodiesChannel channel = BodiesChannel.connected(tcp, ucx, settings.ucxSmallBytes());
      connected = true;
      return channel;
    } finally {
      if (!connected) {
        ucx.close(); // the other is replaced when another transport connects
      }
    }
  }

  private void count(ByteBuffer first) {
    Op op = new FirstOp().seen(first);
    if (op == Op.WRITE_BLOCK) {
      TransferStats.get().add(Counter.UCX_WRITES);
    } else if (op == Op.READ_BLOCK) {
      TransferStats.get().add(Counter.UCX_READS);
    }
    StatsFile.changed(settings.statsFile());
  }

  @Override
  public AutoCloseable serve(DataNode dataNode, XceiverStarter xceivers) throws IOException {
    return UcxDataNode.start(dataNode, settings, xceivers);
  }
}

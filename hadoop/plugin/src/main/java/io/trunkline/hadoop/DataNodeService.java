package io.trunkline.hadoop;

import io.trunkline.hadoop.conf.Setting;
import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.mark.Reflection;
import io.trunkline.hadoop.stats.StatsFile;
import io.trunkline.hadoop.transport.Transport;
import io.trunkline.hadoop.transport.XceiverStarter;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The plug-in's part of a DataNode: accepts data connections by every transport of the list. */
public final class DataNodeService implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(DataNodeService.class);

  private final Settings settings;
  private final List<AutoCloseable> accepting = new ArrayList<>();

  private DataNodeService(Settings settings) {
    this.settings = settings;
  }

  /**
   * Starts the plug-in's part of a DataNode. A transport that cannot be started leaves the others
   * alone.
   *
   * @param dataNode the DataNode
   * @param xceivers hands connections to stock code
   * @return the service
   * @throws IOException when no transport but tcp could be started
   */
  public static DataNodeService start(DataNode dataNode, XceiverStarter xceivers)
      throws IOException {
    Settings settings = Settings.from(dataNode.getConf());
    Reflection.check(settings);
    DataNodeService service = new DataNodeService(settings);
    List<Transport> wanted = Transports.of(settings, dataNode.getConf()).inOrder();
    if (wanted.size() == 1) {
      LOG.info("the plug-in is off, data goes by stock TCP: {} is tcp", Setting.TRANSPORT.key());
    }
    Exception failure = null;
    for (Transport transport : wanted) {
      try {
        service.accepting.add(transport.serve(dataNode, xceivers));
      } catch (IOException | RuntimeException e) {
        LOG.error(
            "transport {} did not start on this DataNode: {}", transport.name(), e.getMessage());
        failure = e;
      }
    }
    if (failure != null && service.accepting.size() == 1) {
      service.close();
      throw new IOException(failure.getMessage(), failure);
    }
    return service;
  }

  @Override
  public void close() {
    for (AutoCloseable transport : accepting) {
      try {
        transport.close();
      } catch (Exception e) {
        LOG.warn("a transport did not stop cleanly: {}", e.toString());
      }
    }
    accepting.clear();
    StatsFile.changed(settings.statsFile());
  }
}

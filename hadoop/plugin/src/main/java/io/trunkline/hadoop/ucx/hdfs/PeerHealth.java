package io.trunkline.hadoop.ucx.hdfs;

import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.transport.NotServed;
import io.trunkline.hadoop.transport.PlaneHealth;
import io.trunkline.hadoop.transport.PlaneHealth.Failure;
import io.trunkline.hadoop.transport.PlaneHealth.Pause;
import io.trunkline.hadoop.ucx.Service;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Which DataNodes UCX has failed to serve of late. UCX may connect well over a network that then
 * loses what is sent, and would be chosen again for each block: such a DataNode is left to the next
 * transport for a while, which grows while it does not get better. A connection that breaks tells
 * of its DataNode alone; only where several in a row do not answer, UCX is left alone altogether.
 */
final class PeerHealth {
  private static final Logger LOG = LoggerFactory.getLogger(PeerHealth.class);

  private final PlaneHealth health;

  /**
   * All DataNodes in good health.
   *
   * @param nanoClock monotonic clock in nanoseconds
   */
  PeerHealth(LongSupplier nanoClock) {
    health = new PlaneHealth(nanoClock);
  }

  /**
   * Refuses a DataNode that is left alone now.
   *
   * @param peer names it
   * @throws NotServed with the cause
   */
  void check(String peer) throws NotServed {
    String paused = health.paused(peer);
    if (paused != null) {
      throw new NotServed(Fallback.PLANE_PAUSED, paused);
    }
  }

  /**
   * A data connection has ended.
   *
   * @param peer names the DataNode
   * @param service how it went
   * @param why what is known of the cause where it did not go well
   */
  void ended(String peer, Service service, String why) {
    switch (service) {
      case CARRIED -> health.succeeded(peer);
      case LOST -> failed(peer, Failure.BAD, "lost: " + why);
      case SILENT -> failed(peer, Failure.SILENT, "no answer in time");
      case UNKNOWN -> {}
    }
  }

  private void failed(String peer, Failure failure, String why) {
    TransferStats.get().add(Counter.UCX_LOST);
    Pause pause = health.failed(peer, failure, why);
    if (pause.begins()) {
      LOG.warn(
          "{}: data connection by UCX: {}; the next ones go without UCX for {} ms",
          peer,
          why,
          pause.leftMs());
    }
  }
}

package io.trunkline.hadoop.ndn.hdfs;

import io.trunkline.hadoop.conf.DataProtection;
import io.trunkline.hadoop.conf.TransportNames;
import io.trunkline.hadoop.ndn.write.NamedWrites;
import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.tap.TapConnection;
import io.trunkline.hadoop.transport.PlaneHealth;
import io.trunkline.hadoop.transport.PlaneHealth.Failure;
import java.io.IOException;
import java.util.function.BooleanSupplier;
import org.apache.hadoop.hdfs.protocol.datatransfer.InvalidEncryptionKeyException;

/**
 * The way of a connection to a plug-in that turns out to carry no write by name.
 *
 * <p>Where stock code was not told that the connection is secure, it has done for its protection
 * what it does at the stock port, and goes on there: with a handshake of its own, or, where the
 * cluster has block tokens alone, with a header that is too long for the secure connection. Where
 * it was told, it has left its handshake out, and what it writes may not go to the stock port,
 * neither in plain nor, as the handshake needs a key that only stock code can get, protected by us.
 * Nothing that the header can say leads here then: whether the write can be served was decided
 * before stock code was told, and what cannot be published goes inline on the secure connection.
 * What is left, such as a header that is too long, fails in the one way that a writer answers by
 * connecting to the same DataNode again; and that connection goes to the stock port, as the
 * DataNode is left alone for a while.
 */
final class StockExit implements NamedWrites.Exit {
  private final TapConnection.Connector stock;
  private final boolean secured;
  private final BooleanSupplier trusted;
  private final PlaneHealth health;
  private final String peer;

  /**
   * The way of one connection.
   *
   * @param stock connects to the DataNode's stock port
   * @param secured whether the connection has a secure channel
   * @param trusted whether stock code was told so
   * @param health told of a failure
   * @param peer the DataNode
   */
  StockExit(
      TapConnection.Connector stock,
      boolean secured,
      BooleanSupplier trusted,
      PlaneHealth health,
      String peer) {
    this.stock = stock;
    this.secured = secured;
    this.trusted = trusted;
    this.health = health;
    this.peer = peer;
  }

  @Override
  public void leave(TapConnection connection, boolean write) throws IOException {
    if (trusted.getAsBoolean()) {
      String why = write ? "its header is too long" : "it is no write";
      health.failed(peer, Failure.BAD, why);
      TransferStats.get()
          .fallback(TransportNames.NDN, TransportNames.TCP, Fallback.SECURED_OTHER, peer, why);
      throw new InvalidEncryptionKeyException(
          "the secure connection to " + peer + " by name does not take this operation: " + why);
    }
    if (secured && !write) {
      TransferStats.get()
          .fallback(
              TransportNames.NDN,
              TransportNames.TCP,
              Fallback.NO_RESOLVER,
              peer,
              "set " + DataProtection.RESOLVER_KEY + " to " + DataProtection.RESOLVER);
    }
    connection.moveTo(stock);
  }
}

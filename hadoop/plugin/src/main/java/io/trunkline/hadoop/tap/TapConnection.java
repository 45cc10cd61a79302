package io.trunkline.hadoop.tap;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;

/** The connection that a tap sits on, as a {@link TapListener} sees it. */
public interface TapConnection {
  /** Opens another connection. */
  @FunctionalInterface
  interface Connector {
    /**
     * Connects.
     *
     * @return a channel that blocks
     * @throws IOException when it cannot be connected
     */
    SocketChannel connect() throws IOException;
  }

  /** Has more to send than is to be kept in memory at once. */
  @FunctionalInterface
  interface Refill {
    /**
     * Puts the next piece.
     *
     * @param out takes it
     * @return false when there is none after it
     * @throws IOException when the connection has failed
     */
    boolean next(TapOutput out) throws IOException;
  }

  /**
   * This end of the connection.
   *
   * @return address and port, as the connection has them
   * @throws IOException when it has ended
   */
  InetSocketAddress local() throws IOException;

  /**
   * The other end.
   *
   * @return address and port, as the connection has them
   * @throws IOException when it has ended
   */
  InetSocketAddress remote() throws IOException;

  /**
   * Closes the connection, on which nothing has been sent, and goes on with another one. Only
   * within a call of the {@link TapListener}.
   *
   * @param other opens it
   * @throws IOException when it cannot be opened
   */
  void moveTo(Connector other) throws IOException;

  /**
   * Sends something whatever stock code is doing, which may write in between. Returns when all has
   * gone out.
   *
   * @param refill called at once, and again each time that all before has gone out, until it has no
   *     more; never while stock code writes
   * @throws IOException when the connection fails, or takes nothing for long
   */
  void send(Refill refill) throws IOException;
}

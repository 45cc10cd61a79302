package io.trunkline.hadoop.transport;

import io.trunkline.hadoop.conf.TrafficCategory;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.channels.SocketChannel;
import java.util.function.BooleanSupplier;

/** A connection that stock code wants, as a transport sees it. */
public interface Dial {
  /**
   * The DataNode's stock data-transfer address.
   *
   * @return a resolved address
   */
  InetSocketAddress dataNode();

  /**
   * How long connecting may take.
   *
   * @return milliseconds, 0 for no limit
   */
  int timeoutMs();

  /**
   * The socket that stock code holds.
   *
   * @return what {@link SocketChannel#socket()} is to answer
   */
  Socket socket();

  /**
   * What the connection will carry.
   *
   * @return the category, null where it is not told
   */
  TrafficCategory category();

  /**
   * Whether stock code has closed its socket meanwhile.
   *
   * @return true when nothing needs to be connected any more
   */
  boolean abandoned();

  /**
   * Connects by TCP, from the address and with the options that stock code wants. It may be called
   * again, also later, in place of the connection before, which it closes.
   *
   * @param to where to
   * @param limitMs how long that may take, in milliseconds, 0 for no limit
   * @return the channel; the socket closes it
   * @throws IOException when it cannot be connected
   */
  SocketChannel tcp(InetSocketAddress to, int limitMs) throws IOException;

  /**
   * The connection that was made last has a secure channel of its own: where stock code asks, it is
   * told so. Called at the end, when nothing can fail any more.
   *
   * @return whether stock code has been told, and so writes what it would else protect
   * @throws IOException when the connection has gone already
   */
  default BooleanSupplier secured() throws IOException {
    return () -> false;
  }

  /**
   * Names the DataNode in logs and counters.
   *
   * @return address and port
   */
  default String peer() {
    return dataNode().getAddress().getHostAddress() + ":" + dataNode().getPort();
  }
}

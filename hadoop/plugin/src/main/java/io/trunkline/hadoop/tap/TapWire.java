package io.trunkline.hadoop.tap;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;

/** The form in which a tap's bytes go over its connection. */
public interface TapWire {
  /** As they are. */
  TapWire PLAIN =
      new TapWire() {
        @Override
        public int write(ByteBuffer from, SocketChannel to) throws IOException {
          return to.write(from);
        }

        @Override
        public int read(SocketChannel from, ByteBuffer to) throws IOException {
          return from.read(to);
        }
      };

  /**
   * Writes as much as the connection takes. Who is left with a part comes back with just that.
   *
   * @param from the bytes; its position moves past those that have gone out whole
   * @param to the connection
   * @return how many those are
   * @throws IOException when the connection has failed
   */
  int write(ByteBuffer from, SocketChannel to) throws IOException;

  /**
   * Reads what has come.
   *
   * @param from the connection
   * @param to where the bytes go
   * @return how many, 0 when none can be had now, -1 when the connection has ended
   * @throws IOException when the connection has failed
   */
  int read(SocketChannel from, ByteBuffer to) throws IOException;

  /**
   * Whether {@link #read} has something without the connection.
   *
   * @return true when no selector may wait
   */
  default boolean pending() {
    return false;
  }

  /** The connection has ended. */
  default void close() {}
}

package io.trunkline.hadoop.ucx;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;

/**
 * What the two sides of a connection tell each other first.
 *
 * @param token that frames to the sender of this must carry
 * @param windowBytes window cost that each stream may send at first
 * @param messageBytes largest message that the sender of this takes
 * @param seen WELCOME: address of the connector as the acceptor sees it; HELLO: where it went
 */
record Greeting(long token, long windowBytes, int messageBytes, InetSocketAddress seen) {
  static final int BYTES = 48;

  private static final int LEAST_WINDOW = 4096;
  private static final int ADDRESS_AT = 24;

  /** Writes it at a position; {@link #BYTES} long. */
  void put(ByteBuffer to, int at) {
    to.putLong(at, token);
    to.putLong(at + 8, windowBytes);
    to.putInt(at + 16, messageBytes);
    byte[] address = seen.getAddress().getAddress();
    to.putShort(at + 20, (short) address.length);
    to.putShort(at + 22, (short) seen.getPort());
    for (int i = 0; i < address.length; i++) {
      to.put(at + ADDRESS_AT + i, address[i]);
    }
  }

  /**
   * Reads one.
   *
   * @param from bytes of a peer that may be hostile
   * @return null when it makes no sense
   */
  static Greeting read(ByteBuffer from) {
    if (from.remaining() != BYTES) {
      return null;
    }
    long window = from.getLong(8);
    int message = from.getInt(16);
    int addressBytes = from.getShort(20);
    boolean sound =
        from.getLong(0) != 0
            && window >= LEAST_WINDOW
            && message >= LEAST_WINDOW
            && (addressBytes == 4 || addressBytes == 16);
    if (!sound) {
      return null;
    }
    byte[] address = new byte[addressBytes];
    from.get(ADDRESS_AT, address);
    try {
      InetSocketAddress seen =
          new InetSocketAddress(InetAddress.getByAddress(address), from.getShort(22) & 0xffff);
      return new Greeting(from.getLong(0), window, message, seen);
    } catch (UnknownHostException e) {
      return null;
    }
  }
}

package io.trunkline.hadoop.ndn.wire;

import java.io.EOFException;
import java.io.IOException;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.channels.WritableByteChannel;
import java.security.SecureRandom;
import java.util.concurrent.TimeUnit;

/**
 * What a DataNode's plug-in says first on every connection, before it is sent anything:
 *
 * <pre>
 *   magic "TRKW" (4) | version of the {@link Preamble} (1) | zeros (3) | nonce (16)
 * </pre>
 *
 * A client that was told of a port by a stranger would else send a write to whatever listens there,
 * and lose the DataNode, which is healthy, from its pipeline. The nonce is of this connection
 * alone, and a part of the handshake's prologue: a {@link SecureHello} that was recorded on another
 * one is refused.
 */
public final class Welcome {
  /** Its length in bytes. */
  public static final int BYTES = 24;

  private static final int MAGIC = 0x54524B57;
  private static final int FIXED_BYTES = 8;
  private static final SecureRandom RANDOM = new SecureRandom();

  private final byte[] bytes;

  private Welcome(byte[] bytes) {
    this.bytes = bytes;
  }

  /**
   * That of a new connection.
   *
   * @return a Welcome with a nonce of its own
   */
  public static Welcome draw() {
    byte[] nonce = new byte[BYTES - FIXED_BYTES];
    RANDOM.nextBytes(nonce);
    return new Welcome(
        ByteBuffer.allocate(BYTES)
            .putInt(MAGIC)
            .put(Preamble.VERSION)
            .position(FIXED_BYTES)
            .put(nonce)
            .array());
  }

  /**
   * Its bytes.
   *
   * @return a buffer ready to be read
   */
  public ByteBuffer encode() {
    return ByteBuffer.wrap(bytes.clone());
  }

  /**
   * Sends it on a connection that has carried nothing yet.
   *
   * @param to the connection
   * @throws IOException when it has gone already
   */
  public void send(WritableByteChannel to) throws IOException {
    if (to.write(encode()) != BYTES) {
      throw new IOException("connection takes nothing");
    }
  }

  /**
   * Waits for one.
   *
   * @param from a connection that blocks
   * @param limitMs how long all of it may take, in milliseconds
   * @return what has come
   * @throws IOException when something else comes, or too little in time
   */
  public static Welcome await(SocketChannel from, int limitMs) throws IOException {
    Socket socket = from.socket();
    int timeoutMs = socket.getSoTimeout();
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(limitMs);
    byte[] bytes = new byte[BYTES];
    for (int at = 0; at < BYTES; ) {
      at += read(socket, bytes, at, deadline);
      if (at >= FIXED_BYTES) {
        // What another version says after its first bytes is not waited for.
        refuseOthers(bytes);
      }
    }
    socket.setSoTimeout(timeoutMs);
    return new Welcome(bytes);
  }

  /** Reads one that has come whole; {@link #BYTES} long. */
  static Welcome decode(byte[] bytes) throws IOException {
    refuseOthers(bytes);
    return new Welcome(bytes);
  }

  /** By the first bytes, {@link #FIXED_BYTES} of them. */
  private static void refuseOthers(byte[] bytes) throws IOException {
    ByteBuffer said = ByteBuffer.wrap(bytes);
    if (said.getInt() != MAGIC) {
      throw new IOException("no plug-in listens there");
    }
    byte version = said.get();
    if (version != Preamble.VERSION) {
      throw new IOException(
          "the plug-in speaks version " + version + ", this side " + Preamble.VERSION);
    }
  }

  /** Reads some bytes of one, from a place on. */
  private static int read(Socket socket, byte[] to, int at, long deadline) throws IOException {
    long leftMs = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
    if (leftMs <= 0) {
      throw new SocketTimeoutException("nothing that a plug-in would say has come in time");
    }
    socket.setSoTimeout((int) leftMs);
    int count = socket.getInputStream().read(to, at, BYTES - at);
    if (count < 0) {
      throw new EOFException("no plug-in listens there: connection closed");
    }
    return count;
  }
}

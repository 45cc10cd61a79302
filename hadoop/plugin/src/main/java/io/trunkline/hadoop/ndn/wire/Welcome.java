package io.trunkline.hadoop.ndn.wire;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.channels.WritableByteChannel;

/**
 * What a DataNode's plug-in says first on every connection, before it is sent anything:
 *
 * <pre>
 *   magic "TRKW" (4) | version of the {@link Preamble} (1) | zeros (3)
 * </pre>
 *
 * A client that was told of a port by a stranger would else send a write to whatever listens there,
 * and lose the DataNode, which is healthy, from its pipeline.
 */
public final class Welcome {
  /** Its length in bytes. */
  public static final int BYTES = 8;

  private static final int MAGIC = 0x54524B57;

  private Welcome() {}

  /**
   * Its bytes.
   *
   * @return a buffer ready to be read
   */
  public static ByteBuffer encode() {
    return ByteBuffer.allocate(BYTES).putInt(MAGIC).put(Preamble.VERSION).position(BYTES).flip();
  }

  /**
   * Sends it on a connection that has carried nothing yet.
   *
   * @param to the connection
   * @throws IOException when it has gone already
   */
  public static void send(WritableByteChannel to) throws IOException {
    if (to.write(encode()) != BYTES) {
      throw new IOException("connection takes nothing");
    }
  }

  /**
   * Waits for it.
   *
   * @param from a connection that blocks
   * @param limitMs how long it may take, in milliseconds
   * @throws IOException when something else comes, or nothing in time
   */
  public static void await(SocketChannel from, int limitMs) throws IOException {
    Socket socket = from.socket();
    int timeoutMs = socket.getSoTimeout();
    byte[] bytes = new byte[BYTES];
    socket.setSoTimeout(limitMs);
    InputStream in = socket.getInputStream();
    if (in.readNBytes(bytes, 0, BYTES) != BYTES) {
      throw new EOFException("no plug-in listens there: connection closed");
    }
    socket.setSoTimeout(timeoutMs);
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
}

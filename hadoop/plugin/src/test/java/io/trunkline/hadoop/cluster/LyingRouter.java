package io.trunkline.hadoop.cluster;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.ToIntFunction;

/**
 * Stands between forwarders and their router and answers in its place: each packet of some kind
 * that comes back, large ones unless another is named, has a bit of its content turned, whoever
 * asked and however often.
 */
final class LyingRouter implements AutoCloseable {
  /** Those of blocks are larger; all that is needed to find each other is smaller. */
  private static final int LARGE_BYTES = 2000;

  /** Nothing of the packet is turned. */
  static final int NONE = -1;

  private final ServerSocket listener;
  private final InetSocketAddress behind;
  private final ToIntFunction<byte[]> turned;
  private final AtomicLong lies = new AtomicLong();

  LyingRouter(InetSocketAddress behind) throws IOException {
    this(behind, packet -> packet.length > LARGE_BYTES ? packet.length / 2 : NONE);
  }

  /** One that turns a bit in the byte that is named of a packet, if it is not {@link #NONE}. */
  LyingRouter(InetSocketAddress behind, ToIntFunction<byte[]> turned) throws IOException {
    this.turned = turned;
    this.behind = behind;
    this.listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    start(this::accept);
  }

  /** URI of the face that leads to it. */
  String face() {
    return "tcp://127.0.0.1:" + listener.getLocalPort();
  }

  /** How often it has lied. */
  long lies() {
    return lies.get();
  }

  private static void start(Runnable run) {
    Thread thread = new Thread(run, "liar");
    thread.setDaemon(true);
    thread.start();
  }

  private void accept() {
    try {
      while (true) {
        Socket near = listener.accept();
        Socket far = new Socket();
        far.connect(behind);
        near.setTcpNoDelay(true);
        far.setTcpNoDelay(true);
        start(() -> pass(near, far));
        start(() -> lie(far, near));
      }
    } catch (IOException e) {
      return; // closed
    }
  }

  private static void pass(Socket from, Socket to) {
    byte[] bytes = new byte[65536];
    try (from;
        to) {
      InputStream in = from.getInputStream();
      OutputStream out = to.getOutputStream();
      int count;
      while ((count = in.read(bytes)) >= 0) {
        out.write(bytes, 0, count);
      }
    } catch (IOException e) {
      return; // one of both has gone
    }
  }

  private void lie(Socket from, Socket to) {
    try (from;
        to) {
      DataInputStream in = new DataInputStream(from.getInputStream());
      DataOutputStream out = new DataOutputStream(to.getOutputStream());
      while (true) {
        copyNumber(in, out);
        int length = copyNumber(in, out);
        byte[] value = new byte[length];
        in.readFully(value);
        int at = turned.applyAsInt(value);
        if (at != NONE) {
          value[at] ^= 1;
          lies.incrementAndGet();
        }
        out.write(value);
        out.flush();
      }
    } catch (IOException e) {
      return; // one of both has gone
    }
  }

  /** A number of NDN's TLV. */
  private static int copyNumber(DataInputStream in, DataOutputStream out) throws IOException {
    int first = in.readUnsignedByte();
    out.writeByte(first);
    if (first < 253) {
      return first;
    }
    if (first == 253) {
      int number = in.readUnsignedShort();
      out.writeShort(number);
      return number;
    }
    int number = in.readInt();
    out.writeInt(number);
    return number;
  }

  @Override
  public void close() throws IOException {
    listener.close();
  }
}

package io.trunkline.hadoop;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Arrays;

/** Stands between two ends of TCP connections, and keeps all that passes; may turn a bit of it. */
public final class RecordingProxy implements AutoCloseable {
  private final ServerSocket listener;
  private final InetSocketAddress behind;
  private final ByteArrayOutputStream seen = new ByteArrayOutputStream();

  /** Which byte on its way there is changed, -1 for none. */
  private final long turned;

  public RecordingProxy(InetSocketAddress behind, long turned) throws IOException {
    this.behind = behind;
    this.turned = turned;
    this.listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    start(this::accept);
  }

  public InetSocketAddress address() {
    return (InetSocketAddress) listener.getLocalSocketAddress();
  }

  private static void start(Runnable run) {
    Thread thread = new Thread(run, "proxy");
    thread.setDaemon(true);
    thread.start();
  }

  private void accept() {
    try {
      while (true) {
        Socket near = listener.accept();
        Socket far = new Socket();
        far.connect(behind);
        start(() -> copy(near, far, turned));
        start(() -> copy(far, near, -1));
      }
    } catch (IOException e) {
      return; // closed
    }
  }

  private void copy(Socket from, Socket to, long turn) {
    byte[] bytes = new byte[65536];
    long passed = 0;
    try (from;
        to) {
      InputStream in = from.getInputStream();
      OutputStream out = to.getOutputStream();
      int count;
      while ((count = in.read(bytes)) >= 0) {
        synchronized (seen) {
          seen.write(bytes, 0, count);
        }
        if (turn >= passed && turn < passed + count) {
          bytes[(int) (turn - passed)] ^= 4;
        }
        passed += count;
        out.write(bytes, 0, count);
      }
    } catch (IOException e) {
      return; // one of both has gone
    }
  }

  public long passed() {
    synchronized (seen) {
      return seen.size();
    }
  }

  /** Whether some bytes have passed, one after the other. */
  public boolean saw(byte[] wanted) {
    byte[] all;
    synchronized (seen) {
      all = seen.toByteArray();
    }
    for (int i = 0; i + wanted.length <= all.length; i++) {
      if (all[i] == wanted[0]
          && Arrays.equals(all, i, i + wanted.length, wanted, 0, wanted.length)) {
        return true;
      }
    }
    return false;
  }

  @Override
  public void close() throws IOException {
    listener.close();
  }
}

package io.trunkline.hadoop.cluster;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.library.NativeLibrary;
import io.trunkline.hadoop.ndn.Native;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import org.apache.hadoop.conf.Configuration;

/** A router of its own, which can be away; its cache is empty when it comes back. */
final class TestRouter implements AutoCloseable {
  private final int port;
  private long handle;

  TestRouter() throws IOException {
    NativeLibrary.load(Settings.from(new Configuration(false)).nativeLibrary());
    try (ServerSocket any = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      port = any.getLocalPort();
    }
    start();
  }

  /** URI of the face that leads to it. */
  String face() {
    return "tcp://127.0.0.1:" + port;
  }

  void start() throws IOException {
    handle =
        Native.nodeOpen(
            "{\"root\":\"/hadoop\",\"name\":\"router\",\"listen\":[\"" + face() + "\"]}");
  }

  void stop() {
    Native.nodeClose(handle);
    handle = 0;
  }

  /** Its state, as JSON. */
  String status() throws IOException {
    return Native.nodeStatus(handle);
  }

  @Override
  public void close() {
    stop();
  }
}

package io.trunkline.hadoop.ucx;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketException;
import java.net.SocketImpl;
import java.nio.channels.SocketChannel;

/** A {@link TimedChannel} as a socket; options of TCP are taken and kept, and change nothing. */
final class UcxSocket extends Socket {
  private static final SocketImpl NONE = null;

  private final TimedChannel channel;
  private volatile int timeoutMs;
  private volatile boolean inputShut;
  private volatile boolean outputShut;

  UcxSocket(TimedChannel channel) throws SocketException {
    super(NONE);
    this.channel = channel;
  }

  @Override
  public SocketChannel getChannel() {
    return channel;
  }

  @Override
  public InputStream getInputStream() {
    return new InputStream() {
      @Override
      public int read() throws IOException {
        byte[] one = new byte[1];
        return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
      }

      @Override
      public int read(byte[] to, int offset, int length) throws IOException {
        return length == 0 ? 0 : channel.read(to, offset, length, timeoutMs);
      }

      @Override
      public void close() throws IOException {
        UcxSocket.this.close();
      }
    };
  }

  @Override
  public OutputStream getOutputStream() {
    return new OutputStream() {
      @Override
      public void write(int b) throws IOException {
        write(new byte[] {(byte) b}, 0, 1);
      }

      @Override
      public void write(byte[] from, int offset, int length) throws IOException {
        channel.write(from, offset, length, 0);
      }

      @Override
      public void close() throws IOException {
        UcxSocket.this.close();
      }
    };
  }

  @Override
  public void setSoTimeout(int milliseconds) {
    timeoutMs = milliseconds;
  }

  @Override
  public int getSoTimeout() {
    return timeoutMs;
  }

  @Override
  public void close() throws IOException {
    channel.close();
  }

  @Override
  public boolean isClosed() {
    return !channel.isOpen();
  }

  @Override
  public boolean isConnected() {
    return true;
  }

  @Override
  public boolean isBound() {
    return true;
  }

  @Override
  public void shutdownInput() throws IOException {
    channel.shutdownInput();
    inputShut = true;
  }

  @Override
  public void shutdownOutput() throws IOException {
    channel.shutdownOutput();
    outputShut = true;
  }

  @Override
  public boolean isInputShutdown() {
    return inputShut;
  }

  @Override
  public boolean isOutputShutdown() {
    return outputShut;
  }

  @Override
  public InetAddress getInetAddress() {
    return channel.getRemoteAddress().getAddress();
  }

  @Override
  public InetAddress getLocalAddress() {
    return channel.getLocalAddress().getAddress();
  }

  @Override
  public int getPort() {
    return channel.getRemoteAddress().getPort();
  }

  @Override
  public int getLocalPort() {
    return channel.getLocalAddress().getPort();
  }

  @Override
  public InetSocketAddress getRemoteSocketAddress() {
    return channel.getRemoteAddress();
  }

  @Override
  public SocketAddress getLocalSocketAddress() {
    return channel.getLocalAddress();
  }

  @Override
  public void setTcpNoDelay(boolean on) {
    // Nothing is delayed here.
  }

  @Override
  public boolean getTcpNoDelay() {
    return true;
  }

  @Override
  public void setKeepAlive(boolean on) {
    // UCX looks after its peers itself.
  }

  @Override
  public boolean getKeepAlive() {
    return true;
  }

  @Override
  public void setSoLinger(boolean on, int seconds) {
    // close() never waits and always sends what was written.
  }

  @Override
  public int getSoLinger() {
    return -1;
  }

  @Override
  public void setSendBufferSize(int bytes) {
    // The window is a setting of its own.
  }

  @Override
  public int getSendBufferSize() {
    return channel.windowBytes();
  }

  @Override
  public void setReceiveBufferSize(int bytes) {
    // The window is a setting of its own.
  }

  @Override
  public int getReceiveBufferSize() {
    return channel.windowBytes();
  }

  @Override
  public void setTrafficClass(int trafficClass) {
    // UCX_IB_TRAFFIC_CLASS is for that.
  }

  @Override
  public int getTrafficClass() {
    return 0;
  }

  @Override
  public String toString() {
    return "UcxSocket[" + channel + "]";
  }
}

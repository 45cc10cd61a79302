package io.trunkline.hadoop.ucx.hdfs;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.stats.StatsFile;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.ucx.UcxChannel;
import io.trunkline.hadoop.wire.FirstOp;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ReadableByteChannel;
import org.apache.hadoop.hdfs.net.Peer;
import org.apache.hadoop.hdfs.protocol.datatransfer.Op;
import org.apache.hadoop.net.unix.DomainSocket;

/** A connection over UCX as stock DataXceiver sees it. */
final class UcxPeer implements Peer {
  private final UcxChannel channel;
  private final Settings settings;
  private final InetSocketAddress remote;
  private final InetSocketAddress local;
  private final Input in = new Input();
  private final UcxOutput out;

  /**
   * A peer.
   *
   * @param channel an accepted connection
   * @param settings the settings
   * @throws IOException when the connection has gone already
   */
  UcxPeer(UcxChannel channel, Settings settings) throws IOException {
    this.channel = channel;
    this.settings = settings;
    remote = (InetSocketAddress) channel.getRemoteAddress();
    local = (InetSocketAddress) channel.getLocalAddress();
    if (remote == null || local == null) {
      throw new IOException("connection has gone before it was accepted");
    }
    out = new UcxOutput(channel);
  }

  /** Reads straight into the arrays of stock code. */
  private final class Input extends InputStream {
    private final FirstOp firstOp = new FirstOp();
    private volatile int timeoutMs;

    @Override
    public int read() throws IOException {
      byte[] one = new byte[1];
      int count = read(one, 0, 1);
      return count < 0 ? -1 : one[0] & 0xFF;
    }

    @Override
    public int read(byte[] to, int off, int length) throws IOException {
      if (length == 0) {
        return 0;
      }
      int count = channel.read(to, off, length, timeoutMs);
      if (count > 0
          && !firstOp.done()
          && firstOp.seen(ByteBuffer.wrap(to, off, count)) == Op.WRITE_BLOCK) {
        TransferStats.get().add(Counter.UCX_RECEIVES);
      }
      return count;
    }

    @Override
    public void close() throws IOException {
      channel.close();
    }
  }

  /** Stock DataXceiver reads by stream. */
  @Override
  public ReadableByteChannel getInputStreamChannel() {
    return null;
  }

  @Override
  public void setReadTimeout(int timeoutMs) {
    in.timeoutMs = timeoutMs;
  }

  @Override
  public void setWriteTimeout(int timeoutMs) {
    out.setTimeout(timeoutMs);
  }

  @Override
  public int getReceiveBufferSize() {
    return settings.ucxWindowBytes();
  }

  @Override
  public boolean getTcpNoDelay() {
    return true;
  }

  /** Also true once stock code has closed the output alone. */
  @Override
  public boolean isClosed() {
    return !channel.isOpen();
  }

  /** Stock code has often closed one of the streams, and so the channel, before. */
  @Override
  public void close() throws IOException {
    channel.close();
    StatsFile.changed(settings.statsFile());
  }

  @Override
  public String getRemoteAddressString() {
    return remote.toString();
  }

  @Override
  public String getLocalAddressString() {
    return local.toString();
  }

  @Override
  public InputStream getInputStream() {
    return in;
  }

  @Override
  public OutputStream getOutputStream() {
    return out;
  }

  @Override
  public boolean isLocal() {
    return remote.getAddress().equals(local.getAddress());
  }

  @Override
  public DomainSocket getDomainSocket() {
    return null;
  }

  @Override
  public boolean hasSecureChannel() {
    return false;
  }

  @Override
  public String toString() {
    return "UcxPeer(" + remote + ")";
  }
}

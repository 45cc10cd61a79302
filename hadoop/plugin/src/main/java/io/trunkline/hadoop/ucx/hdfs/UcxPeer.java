package io.trunkline.hadoop.ucx.hdfs;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.transport.TransportPeer;
import io.trunkline.hadoop.ucx.TimedChannel;
import io.trunkline.hadoop.wire.FirstOp;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import org.apache.hadoop.hdfs.protocol.datatransfer.Op;

/** A connection over UCX as stock DataXceiver sees it. */
final class UcxPeer extends TransportPeer {
  private final TimedChannel channel;
  private final Settings settings;
  private final Input in = new Input();
  private final UcxOutput out;

  /**
   * A peer.
   *
   * @param channel an accepted connection
   * @param settings the settings
   * @throws IOException when the connection has gone already
   */
  UcxPeer(TimedChannel channel, Settings settings) throws IOException {
    super(channel.getRemoteAddress(), channel.getLocalAddress(), settings.statsFile());
    this.channel = channel;
    this.settings = settings;
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

  @Override
  protected boolean isOpen() {
    return channel.isOpen();
  }

  @Override
  protected void disconnect() throws IOException {
    channel.close();
  }

  @Override
  public InputStream getInputStream() {
    return in;
  }

  @Override
  public OutputStream getOutputStream() {
    return out;
  }
}

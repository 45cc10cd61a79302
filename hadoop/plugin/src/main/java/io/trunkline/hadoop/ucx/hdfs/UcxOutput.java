package io.trunkline.hadoop.ucx.hdfs;

import io.trunkline.hadoop.ucx.TimedChannel;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import org.apache.hadoop.io.LongWritable;
import org.apache.hadoop.net.SocketOutputStream;

/**
 * What stock DataXceiver writes a connection over UCX with. It is a stock socket stream by type,
 * since only to such a one does a DataNode hand the block's file itself; the file is then read
 * straight into the buffers that are sent.
 */
final class UcxOutput extends SocketOutputStream {
  private final TimedChannel channel;
  private volatile int timeoutMs;

  UcxOutput(TimedChannel channel) throws IOException {
    super(channel, 0);
    this.channel = channel;
  }

  @Override
  public void setTimeout(int milliseconds) {
    timeoutMs = milliseconds;
  }

  @Override
  public void write(int b) throws IOException {
    write(new byte[] {(byte) b}, 0, 1);
  }

  @Override
  public void write(byte[] from, int off, int length) throws IOException {
    if (length > 0) {
      channel.write(from, off, length, timeoutMs);
    }
  }

  @Override
  public int write(ByteBuffer from) throws IOException {
    return channel.write(from, timeoutMs);
  }

  /** The channel waits by itself. */
  @Override
  public void waitForWritable() {}

  @Override
  public void transferToFully(
      FileChannel file,
      long position,
      int count,
      LongWritable waitForWritableTime,
      LongWritable transferToTime)
      throws IOException {
    long start = System.nanoTime();
    channel.transferFrom(file, position, count, timeoutMs);
    if (waitForWritableTime != null) {
      waitForWritableTime.set(0);
    }
    if (transferToTime != null) {
      transferToTime.set(System.nanoTime() - start);
    }
  }
}

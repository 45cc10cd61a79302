package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.ndn.wire.AnswerFrame;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import org.apache.hadoop.net.SocketOutputStream;

/**
 * What stock code writes its answers to: as they are, which lets it send blocks straight from their
 * files, until the connection turns out to be one of a write by name, and in frames from then on.
 */
final class AnswerOutput extends SocketOutputStream implements NamedInput.Answers {
  private boolean framed;

  /**
   * An output.
   *
   * @param channel the connection
   * @throws IOException when it has gone already
   */
  AnswerOutput(SocketChannel channel) throws IOException {
    super(channel, 0);
  }

  @Override
  public synchronized void begin() {
    framed = true;
  }

  @Override
  public synchronized void ask(long seqno) throws IOException {
    byte[] frame = AnswerFrame.ask(seqno);
    super.write(frame, 0, frame.length);
  }

  @Override
  public void write(int one) throws IOException {
    write(new byte[] {(byte) one}, 0, 1);
  }

  @Override
  public synchronized void write(byte[] from, int off, int length) throws IOException {
    if (!framed) {
      super.write(from, off, length);
      return;
    }
    for (int at = 0; at < length; at += AnswerFrame.MAX_STOCK_BYTES) {
      int part = Math.min(length - at, AnswerFrame.MAX_STOCK_BYTES);
      ByteBuffer frame = ByteBuffer.allocate(AnswerFrame.STOCK_HEAD_BYTES + part);
      AnswerFrame.stock(part, frame);
      frame.put(from, off + at, part);
      super.write(frame.array(), 0, frame.position());
    }
  }
}

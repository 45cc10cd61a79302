package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.ndn.secure.SecureSession;
import io.trunkline.hadoop.ndn.wire.AnswerFrame;
import io.trunkline.hadoop.ndn.wire.SecureHello;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import org.apache.hadoop.net.SocketOutputStream;

/**
 * What stock code writes its answers to: as they are, which lets it send blocks straight from their
 * files, until the connection turns out to be one of a write by name, and in frames from then on.
 * Where the connection has been made secure, all goes in records of its session.
 */
final class AnswerOutput extends SocketOutputStream implements NamedInput.Answers {
  private boolean framed;

  /** Null until the connection is secure. */
  private SecureSession session;

  private ByteBuffer sealed;

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

  /**
   * Sends the last bytes that go as they are.
   *
   * @param message this end's message of the handshake
   * @param with its session, whose records all else goes in
   * @throws IOException when the connection fails
   */
  synchronized void secure(byte[] message, SecureSession with) throws IOException {
    super.write(message, 0, message.length);
    session = with;
    sealed = ByteBuffer.allocate(Short.BYTES + SecureHello.MAX_RECORD_BYTES);
  }

  @Override
  public synchronized void ask(long seqno) throws IOException {
    byte[] frame = AnswerFrame.ask(seqno);
    send(frame, 0, frame.length);
  }

  private void send(byte[] from, int off, int length) throws IOException {
    if (session == null) {
      super.write(from, off, length);
      return;
    }
    for (int at = 0; at < length; at += SecureHello.MAX_PLAIN_BYTES) {
      int part = Math.min(length - at, SecureHello.MAX_PLAIN_BYTES);
      session.seal(from, off + at, part, sealed.clear());
      super.write(sealed.array(), 0, sealed.position());
    }
  }

  @Override
  public void write(int one) throws IOException {
    write(new byte[] {(byte) one}, 0, 1);
  }

  @Override
  public synchronized void write(byte[] from, int off, int length) throws IOException {
    if (!framed) {
      send(from, off, length);
      return;
    }
    for (int at = 0; at < length; at += AnswerFrame.MAX_STOCK_BYTES) {
      int part = Math.min(length - at, AnswerFrame.MAX_STOCK_BYTES);
      ByteBuffer frame = ByteBuffer.allocate(AnswerFrame.STOCK_HEAD_BYTES + part);
      AnswerFrame.stock(part, frame);
      frame.put(from, off + at, part);
      send(frame.array(), 0, frame.position());
    }
  }
}

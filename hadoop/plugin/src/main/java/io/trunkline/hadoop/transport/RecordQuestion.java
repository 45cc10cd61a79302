package io.trunkline.hadoop.transport;

import io.trunkline.hadoop.util.Nonces;
import java.io.IOException;
import java.net.DatagramPacket;
import java.net.DatagramSocket;
import java.net.InetSocketAddress;
import java.net.PortUnreachableException;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;

/** Asks a DataNode by UDP; the other end is a {@link RecordServer}. */
public final class RecordQuestion implements Discovery.Question {
  /** Datagrams may be lost: so often is asked before the time is over. */
  private static final int TRIES = 4;

  private final String transport;
  private final int timeoutMs;

  /**
   * A question.
   *
   * @param transport name of the transport
   * @param timeoutMs how long to wait for an answer, in milliseconds
   */
  public RecordQuestion(String transport, int timeoutMs) {
    this.transport = transport;
    this.timeoutMs = timeoutMs;
  }

  @Override
  public DataNodeRecord ask(InetSocketAddress dataNode) throws IOException {
    long nonce = Nonces.next();
    byte[] question = RecordWire.question(transport, nonce);
    try (DatagramSocket socket = new DatagramSocket()) {
      socket.connect(dataNode);
      for (int i = 0; i < TRIES; i++) {
        socket.send(new DatagramPacket(question, question.length));
        byte[] record = await(socket, nonce, Math.max(1, timeoutMs / TRIES));
        if (record != null) {
          return DataNodeRecord.decode(record);
        }
      }
    } catch (PortUnreachableException e) {
      throw new IOException("nobody answers at UDP port " + dataNode.getPort(), e);
    }
    throw new IOException(
        "no answer from UDP port " + dataNode.getPort() + " in " + timeoutMs + " ms");
  }

  private static byte[] await(DatagramSocket socket, long nonce, int limitMs) throws IOException {
    byte[] bytes = new byte[RecordWire.BYTES];
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(limitMs);
    while (true) {
      long leftMs = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
      if (leftMs <= 0) {
        return null;
      }
      socket.setSoTimeout((int) leftMs);
      DatagramPacket packet = new DatagramPacket(bytes, bytes.length);
      try {
        socket.receive(packet);
      } catch (SocketTimeoutException e) {
        return null;
      }
      byte[] record = RecordWire.answer(ByteBuffer.wrap(bytes, 0, packet.getLength()), nonce);
      if (record != null) {
        return record;
      }
    }
  }
}

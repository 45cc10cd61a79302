package io.trunkline.hadoop.ndn.secure;

import io.trunkline.hadoop.ndn.wire.DataNodeAddress;
import io.trunkline.hadoop.ndn.wire.SecureHello;
import io.trunkline.hadoop.ndn.wire.Welcome;
import io.trunkline.hadoop.wire.BlockToken;
import java.io.EOFException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;

/** The handshake of a secure control connection, as who has connected does it. */
public final class SecureClient {
  private SecureClient() {}

  /**
   * Makes a connection secure.
   *
   * @param channel a connection that blocks
   * @param welcome what the plug-in has said on it
   * @param token the secret that both ends have; its identifier is sent as it is
   * @param dataNode the data-transfer address of the DataNode that is meant: no other one answers
   * @param limitMs how long it may take, in milliseconds
   * @return the session
   * @throws IOException when the other end has not the token's password, or says nothing in time
   */
  public static SecureSession handshake(
      SocketChannel channel,
      Welcome welcome,
      BlockToken token,
      InetSocketAddress dataNode,
      int limitMs)
      throws IOException {
    if (token.identifier().length > BlockToken.MAX_IDENTIFIER_BYTES) {
      throw new IOException("block token of " + token.identifier().length + " bytes");
    }
    String address = DataNodeAddress.of(dataNode);
    SecureSession session =
        SecureSession.client(welcome, token.password(), token.identifier(), address);
    try {
      ByteBuffer hello =
          ByteBuffer.wrap(new SecureHello(token.identifier(), address, session.say()).encode());
      while (hello.hasRemaining()) {
        channel.write(hello);
      }
      session.hear(read(channel, limitMs));
      return session;
    } catch (IOException | RuntimeException e) {
      session.close();
      throw e;
    }
  }

  private static byte[] read(SocketChannel channel, int limitMs) throws IOException {
    Socket socket = channel.socket();
    int timeoutMs = socket.getSoTimeout();
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(limitMs);
    byte[] message = new byte[SecureHello.MESSAGE_BYTES];
    int have = 0;
    while (have < message.length) {
      long leftMs = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
      if (leftMs <= 0) {
        throw new SocketTimeoutException("no handshake within " + limitMs + " ms");
      }
      socket.setSoTimeout((int) leftMs);
      int count = socket.getInputStream().read(message, have, message.length - have);
      if (count < 0) {
        throw new EOFException("the plug-in refuses the handshake, its log says why");
      }
      have += count;
    }
    socket.setSoTimeout(timeoutMs);
    return message;
  }
}

package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.library.ShortWait;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.ndn.wire.Welcome;
import io.trunkline.hadoop.transport.TransportPeer;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import org.apache.hadoop.hdfs.net.NioInetPeer;

/**
 * A connection to the plug-in as stock DataXceiver sees it: a stock peer, but for what is read from
 * it, and for how answers go back.
 */
final class NamedPeer extends TransportPeer {
  private final NioInetPeer stock;
  private final AnswerOutput out;
  private final NamedInput in;
  private volatile int readTimeoutMs;

  /** Until the other end has shown a right to be here, stock code's patience is not for it. */
  private volatile boolean known;

  private volatile int patienceMs;

  /**
   * A peer.
   *
   * @param socket an accepted connection, with a channel
   * @param settings the settings
   * @param nodes the forwarders
   * @param replicas told of blocks that are written to, null where none is read by name
   * @param tokens knows the passwords of block tokens, null where there are none
   * @param own which DataNode this is
   * @throws IOException when the connection has gone already
   */
  NamedPeer(
      Socket socket,
      Settings settings,
      NodesByCategory nodes,
      ServedReplicas replicas,
      BlockTokens tokens,
      OwnAddresses own)
      throws IOException {
    super(socket.getRemoteSocketAddress(), socket.getLocalSocketAddress(), settings.statsFile());
    socket.setTcpNoDelay(true);
    Welcome welcome = Welcome.draw();
    welcome.send(socket.getChannel());
    stock = new NioInetPeer(socket);
    out = new AnswerOutput(socket.getChannel());
    known = tokens == null;
    // Stock code asks whether the connection is secure before it sets a timeout.
    setReadTimeout(NamedInput.HANDSHAKE_MS);
    in =
        new NamedInput(
            new ControlInput(
                ShortWait.before(stock.getInputStream(), socket.getChannel()), socket.getChannel()),
            nodes.reads().names(),
            (op, preamble, records) -> {
              // Whoever may not write a block does not take it from its readers either.
              boolean begins = replicas != null && (tokens == null || BlockTokens.permits(op));
              WriteKeys.Write noted = begins ? replicas.begins(op, preamble) : null;
              NdnNode node = nodes.of(op);
              return new BodyPuller(
                  op,
                  preamble,
                  records,
                  (prefix, stream, first) ->
                      new LivePull(
                          node,
                          prefix,
                          preamble.segmentBytes(),
                          stream,
                          first,
                          preamble.key(),
                          noted),
                  settings.pullTimeoutMs(),
                  () -> readTimeoutMs);
            },
            out,
            new Handshakes(tokens, own, welcome, out, this::becomeKnown),
            System::nanoTime);
  }

  /** Waits for the handshake, if there is to be one. */
  @Override
  public boolean hasSecureChannel() {
    return in.secured();
  }

  @Override
  public void setReadTimeout(int timeoutMs) throws IOException {
    readTimeoutMs = timeoutMs;
    boolean longer = timeoutMs == 0 || timeoutMs > NamedInput.HANDSHAKE_MS;
    patience(longer && !known ? NamedInput.HANDSHAKE_MS : timeoutMs);
  }

  private void patience(int timeoutMs) throws IOException {
    patienceMs = timeoutMs;
    stock.setReadTimeout(timeoutMs);
  }

  /** How long a read waits at most just now, in milliseconds. */
  int patienceMs() {
    return patienceMs;
  }

  private void becomeKnown() throws IOException {
    if (!known) {
      known = true;
      patience(readTimeoutMs);
    }
  }

  @Override
  public void setWriteTimeout(int timeoutMs) throws IOException {
    out.setTimeout(timeoutMs);
  }

  @Override
  public int getReceiveBufferSize() throws IOException {
    return stock.getReceiveBufferSize();
  }

  @Override
  public boolean getTcpNoDelay() throws IOException {
    return stock.getTcpNoDelay();
  }

  @Override
  protected boolean isOpen() {
    return !stock.isClosed();
  }

  @Override
  protected void disconnect() throws IOException {
    try {
      stock.close();
    } finally {
      in.close();
    }
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

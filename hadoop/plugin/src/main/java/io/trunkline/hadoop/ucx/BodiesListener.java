package io.trunkline.hadoop.ucx;

import java.io.Closeable;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;

/**
 * Where {@link BodiesChannel}s connect to: a UCX listener and a TCP one. The TCP connection begins
 * with the name of the stream that belongs to it; whichever is here first waits for the other.
 */
public final class BodiesListener implements Closeable {
  /** Most halves of each kind that wait, and most TCP connections that have not said a name. */
  static final int MOST_WAITING = 256;

  private static final long MOST_NANOS = TimeUnit.SECONDS.toNanos(10);
  private static final long CHECK_MS = 1000;
  private static final long JOIN_MS = 2000;

  private final UcxListener ucx;
  private final ServerSocketChannel tcp;
  private final Selector selector;
  private final int smallBytes;
  private final long mostNanos;
  private final Halves<UcxChannel> streams;
  private final Halves<SocketChannel> connections;
  private final Queue<BodiesChannel> made = new ConcurrentLinkedQueue<>();
  private final Thread streamAcceptor = new Thread(this::acceptStreams, "trunkline-ucx-halves");
  private volatile boolean closed;

  /** What is known of a TCP connection that has not said its name. */
  private record Nameless(ByteBuffer name, long sinceNanos) {}

  private BodiesListener(
      UcxListener ucx, ServerSocketChannel tcp, Selector selector, int smallBytes, long mostNanos) {
    this.ucx = ucx;
    this.tcp = tcp;
    this.selector = selector;
    this.smallBytes = smallBytes;
    this.mostNanos = mostNanos;
    streams = new Halves<>(MOST_WAITING, mostNanos);
    connections = new Halves<>(MOST_WAITING, mostNanos);
  }

  /**
   * Listens at two ports that are free.
   *
   * @param node what UCX goes by
   * @param address where; its port is not used
   * @param smallBytes writes below go by TCP
   * @throws IOException when the address cannot be had
   */
  public static BodiesListener open(UcxNode node, InetSocketAddress address, int smallBytes)
      throws IOException {
    return open(node, address, smallBytes, MOST_NANOS);
  }

  static BodiesListener open(
      UcxNode node, InetSocketAddress address, int smallBytes, long mostNanos) throws IOException {
    InetSocketAddress any = new InetSocketAddress(address.getAddress(), 0);
    ServerSocketChannel tcp = ServerSocketChannel.open();
    Selector selector = Selector.open();
    try {
      tcp.bind(any, MOST_WAITING).configureBlocking(false);
      tcp.register(selector, SelectionKey.OP_ACCEPT);
      UcxListener ucx = node.listen(any, MOST_WAITING);
      BodiesListener listener = new BodiesListener(ucx, tcp, selector, smallBytes, mostNanos);
      listener.streamAcceptor.setDaemon(true);
      listener.streamAcceptor.start();
      return listener;
    } catch (IOException e) {
      selector.close();
      tcp.close();
      throw e;
    }
  }

  /** Where streams connect to. */
  public int ucxPort() {
    return ucx.address().getPort();
  }

  /** Where TCP connections go. */
  public int tcpPort() {
    return tcp.socket().getLocalPort();
  }

  /** Whether connections may still come. */
  public boolean isOpen() {
    return !closed;
  }

  /**
   * Waits for a connection, both halves of it. One thread at a time.
   *
   * @throws ClosedChannelException when the listener is closed
   */
  public BodiesChannel accept() throws IOException {
    try {
      for (; ; ) {
        BodiesChannel next = made.poll();
        if (next != null) {
          return next;
        }
        selector.select(CHECK_MS);
        try {
          for (SelectionKey key : selector.selectedKeys()) {
            ready(key);
          }
        } finally {
          selector.selectedKeys().clear();
        }
        expire();
      }
    } catch (ClosedSelectorException e) {
      throw new ClosedChannelException();
    }
  }

  /** What fails with one connection is no matter of the others. */
  private void ready(SelectionKey key) throws IOException {
    if (!key.isValid()) {
      return;
    }
    if (key.isAcceptable()) {
      acceptConnections();
      return;
    }
    try {
      readName((SocketChannel) key.channel(), key);
    } catch (IOException e) {
      Connections.LOG.debug("TCP half of a connection: {}", e.toString());
      Halves.close(key.channel());
    }
  }

  private void acceptConnections() throws IOException {
    for (SocketChannel next = tcp.accept(); next != null; next = tcp.accept()) {
      if (selector.keys().size() > MOST_WAITING) {
        Halves.close(next);
        continue;
      }
      next.configureBlocking(false);
      SelectionKey key = next.register(selector, SelectionKey.OP_READ);
      key.attach(new Nameless(ByteBuffer.allocate(StreamName.BYTES), System.nanoTime()));
    }
  }

  private void readName(SocketChannel from, SelectionKey key) throws IOException {
    ByteBuffer bytes = ((Nameless) key.attachment()).name();
    int count = from.read(bytes);
    if (count >= 0 && bytes.hasRemaining()) {
      return;
    }
    key.cancel();
    StreamName name = count < 0 ? null : StreamName.read(bytes.flip());
    if (name == null) {
      Halves.close(from);
      return;
    }
    synchronized (this) {
      UcxChannel stream = streams.take(name);
      if (stream != null) {
        pair(from, stream);
      } else if (closed) {
        Halves.close(from);
      } else {
        connections.add(name, from, System.nanoTime());
      }
    }
  }

  private void acceptStreams() {
    while (!closed) {
      try {
        UcxChannel stream = ucx.accept(0);
        StreamName name = stream.name();
        synchronized (this) {
          SocketChannel connection = connections.take(name);
          if (connection != null) {
            pair(connection, stream);
            selector.wakeup();
          } else if (closed) {
            stream.close();
          } else {
            streams.add(name, stream, System.nanoTime());
          }
        }
      } catch (ClosedChannelException e) {
        return;
      } catch (IOException | RuntimeException | OutOfMemoryError e) {
        Connections.LOG.debug("UCX half of a connection: {}", e.toString());
      }
    }
  }

  private void pair(SocketChannel connection, UcxChannel stream) {
    try {
      made.add(new BodiesChannel(connection, stream, smallBytes));
    } catch (IOException e) {
      Connections.LOG.debug("a connection has gone before it was accepted", e);
      Halves.close(connection);
      Halves.close(stream);
    }
  }

  private void expire() {
    long now = System.nanoTime();
    for (SelectionKey key : selector.keys()) {
      if (key.isValid()
          && key.attachment() instanceof Nameless nameless
          && now - nameless.sinceNanos() >= mostNanos) {
        Halves.close(key.channel());
      }
    }
    synchronized (this) {
      streams.expire(now);
      connections.expire(now);
    }
  }

  /** Streams and connections that wait for their other half. */
  synchronized int waiting() {
    return streams.size() + connections.size();
  }

  /** Accepts no more; connections that were accepted go on, halves are closed. */
  @Override
  public void close() throws IOException {
    synchronized (this) {
      closed = true;
      streams.closeAll();
      connections.closeAll();
    }
    ucx.close();
    try {
      for (SelectionKey key : selector.keys()) {
        if (key.isValid()) {
          Halves.close(key.channel());
        }
      }
    } catch (ClosedSelectorException e) {
      return;
    }
    selector.close();
    tcp.close();
    for (BodiesChannel left = made.poll(); left != null; left = made.poll()) {
      left.close();
    }
    try {
      streamAcceptor.join(JOIN_MS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}

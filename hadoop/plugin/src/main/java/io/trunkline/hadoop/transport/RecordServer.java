package io.trunkline.hadoop.transport;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.ClosedSelectorException;
import java.nio.channels.DatagramChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Answers those who ask a DataNode, by UDP, how a transport of it is reached. It needs nothing but
 * the address that everybody knows already; {@link RecordWire} says how it is asked.
 */
public final class RecordServer implements AutoCloseable {
  private static final Logger LOG = LoggerFactory.getLogger(RecordServer.class);
  private static final long JOIN_MS = 500;
  private static final long PAUSE_MS = 100;

  private final String transport;
  private final DataNodeRecord record;
  private final Selector selector;
  private final List<DatagramChannel> channels = new ArrayList<>();
  private final Thread thread;

  /**
   * Begins to answer.
   *
   * @param transfer where the DataNode's stock data-transfer server listens
   * @param transport name of the transport
   * @param record the answer
   * @throws IOException when the UDP port cannot be had
   */
  public RecordServer(InetSocketAddress transfer, String transport, DataNodeRecord record)
      throws IOException {
    this.transport = transport;
    this.record = record;
    selector = Selector.open();
    IOException failure = null;
    for (InetAddress address : addresses(transfer.getAddress())) {
      try {
        bind(new InetSocketAddress(address, transfer.getPort()));
      } catch (IOException e) {
        LOG.debug("not bound to {}: {}", address, e.getMessage());
        failure = e;
      }
    }
    if (channels.isEmpty()) {
      selector.close();
      throw new IOException(
          "UDP port " + transfer.getPort() + " of " + transfer.getAddress() + " cannot be had",
          failure);
    }
    thread = new Thread(this::run, "trunkline-record-" + transport);
    thread.setDaemon(true);
    thread.start();
  }

  /**
   * An answer must come from the address that was asked, which a socket for all addresses does not
   * see to on a host with several.
   */
  private static List<InetAddress> addresses(InetAddress bound) throws IOException {
    if (!bound.isAnyLocalAddress()) {
      return List.of(bound);
    }
    List<InetAddress> all = new ArrayList<>();
    for (NetworkInterface one : Collections.list(NetworkInterface.getNetworkInterfaces())) {
      all.addAll(Collections.list(one.getInetAddresses()));
    }
    return all;
  }

  private void bind(InetSocketAddress address) throws IOException {
    DatagramChannel channel = DatagramChannel.open();
    try {
      channel.bind(address);
      channel.configureBlocking(false);
      channel.register(selector, SelectionKey.OP_READ);
      channels.add(channel);
    } catch (IOException | UnsupportedOperationException e) {
      channel.close();
      throw new IOException(address + ": " + e.getMessage(), e);
    }
  }

  private void run() {
    ByteBuffer in = ByteBuffer.allocate(RecordWire.BYTES + 1);
    while (selector.isOpen()) {
      try {
        selector.select();
        for (SelectionKey key : selector.selectedKeys()) {
          answer((DatagramChannel) key.channel(), in);
        }
        selector.selectedKeys().clear();
      } catch (ClosedSelectorException e) {
        return;
      } catch (IOException | RuntimeException | OutOfMemoryError e) {
        LOG.debug("question not answered: {}", e.toString());
        pause();
      }
    }
  }

  private void answer(DatagramChannel channel, ByteBuffer in) throws IOException {
    SocketAddress from;
    while (selector.isOpen() && (from = channel.receive(in.clear())) != null) {
      RecordWire.Question question = RecordWire.question(in.flip());
      if (transport.equals(question.transport())) {
        send(channel, RecordWire.answer(record, question.nonce()), from);
      }
    }
  }

  /** A question may come from where no answer can go; that must not delay the others. */
  private static void send(DatagramChannel channel, ByteBuffer answer, SocketAddress to) {
    try {
      channel.send(answer, to);
    } catch (IOException | RuntimeException e) {
      LOG.trace("no answer to {}: {}", to, e.toString());
    }
  }

  private static void pause() {
    try {
      Thread.sleep(PAUSE_MS);
    } catch (InterruptedException e) {
      LOG.debug("interrupted, the DataNode shuts down");
    }
  }

  @Override
  public void close() {
    try {
      selector.close();
      for (DatagramChannel channel : channels) {
        channel.close();
      }
      thread.join(JOIN_MS);
    } catch (IOException e) {
      LOG.debug("not closed", e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}

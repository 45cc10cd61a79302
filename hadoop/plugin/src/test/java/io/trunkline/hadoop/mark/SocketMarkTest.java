package io.trunkline.hadoop.mark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.conf.TrafficCategory;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.net.SocketException;
import java.net.SocketOption;
import java.net.StandardProtocolFamily;
import java.net.StandardSocketOptions;
import java.nio.channels.NetworkChannel;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class SocketMarkTest {
  private static Settings marking(String value) {
    Configuration conf = new Configuration(false);
    conf.set("trunkline.dscp", value);
    conf.set("trunkline.dscp.client-read", "46");
    return Settings.from(conf);
  }

  private final SocketMark read = SocketMark.of(marking("on"), TrafficCategory.CLIENT_READ);

  @ParameterizedTest
  @ValueSource(strings = {"127.0.0.1", "::1"})
  void overEitherVersionOfIp(String address) throws IOException {
    try (ServerSocketChannel listener =
            ServerSocketChannel.open()
                .bind(new InetSocketAddress(InetAddress.getByName(address), 0));
        SocketChannel socket = SocketChannel.open(family(address))) {
      read.set(socket);
      assertEquals(46 << 2, socket.getOption(StandardSocketOptions.IP_TOS));
      socket.connect(listener.getLocalAddress());
      assertEquals(46 << 2, socket.getOption(StandardSocketOptions.IP_TOS));
      SocketMark.of(marking("off"), TrafficCategory.CLIENT_READ).set(socket);
      SocketMark.NONE.set(socket);
      assertEquals(46 << 2, socket.getOption(StandardSocketOptions.IP_TOS), "left alone");
    }
  }

  private StandardProtocolFamily family(String address) throws IOException {
    return read.needsIpv4Only(InetAddress.getByName(address))
        ? StandardProtocolFamily.INET
        : StandardProtocolFamily.INET6;
  }

  @Test
  void socketsThatAreNotMarkedStayAsTheyAre() throws IOException {
    assertFalse(SocketMark.NONE.needsIpv4Only(InetAddress.getByName("127.0.0.1")));
    assertFalse(read.needsIpv4Only(InetAddress.getByName("::1")));
    assertFalse(read.needsIpv4Only(null));
  }

  @Test
  void aRefusalIsCountedAndNothingElse() {
    long refused = TransferStats.get().value(Counter.MARKS_REFUSED);
    read.set(new Refusing());
    read.set(new Refusing());
    assertEquals(refused + 2, TransferStats.get().value(Counter.MARKS_REFUSED));
  }

  /** A channel of a system that lets nobody mark anything. */
  private static final class Refusing implements NetworkChannel {
    @Override
    public <T> NetworkChannel setOption(SocketOption<T> name, T value) throws IOException {
      throw new SocketException("Operation not permitted");
    }

    @Override
    public NetworkChannel bind(SocketAddress local) {
      return this;
    }

    @Override
    public SocketAddress getLocalAddress() {
      return null;
    }

    @Override
    public <T> T getOption(SocketOption<T> name) {
      return null;
    }

    @Override
    public Set<SocketOption<?>> supportedOptions() {
      return Set.of();
    }

    @Override
    public boolean isOpen() {
      return true;
    }

    @Override
    public void close() {}
  }
}

package io.trunkline.hadoop.mark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

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
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.log4j.AppenderSkeleton;
import org.apache.log4j.Logger;
import org.apache.log4j.spi.LoggingEvent;
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
      assertTrue(socket.supportedOptions().contains(StandardSocketOptions.IP_TOS));
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
  void aRefusalIsCountedAndTheFirstOfItsCategoryLogged() {
    SocketMark split = SocketMark.of(marking("on"), TrafficCategory.SPLIT);
    SocketMark result = SocketMark.of(marking("on"), TrafficCategory.RESULT);
    long refused = refused();
    List<String> said =
        logged(
            () -> {
              split.set(new Refusing());
              split.set(new Refusing());
              result.set(new Refusing());
            });
    assertEquals(refused + 3, refused());
    assertEquals(2, said.size(), said.toString());
    assertTrue(said.get(0).startsWith("connections of category split go without a mark"));
    assertTrue(said.get(1).endsWith("java.net.SocketException: Operation not permitted"));
  }

  /** By whoever closes it while it is to be connected: the system has refused nothing. */
  @Test
  void aSocketThatWasClosedMeanwhileIsNoRefusal() throws IOException {
    SocketChannel closed = SocketChannel.open();
    closed.close();
    SocketMark write = SocketMark.of(marking("on"), TrafficCategory.CLIENT_WRITE);
    long refused = refused();
    assertEquals(List.of(), logged(() -> write.set(closed)));
    assertEquals(refused, refused());
  }

  private static long refused() {
    return TransferStats.get().value(Counter.MARKS_REFUSED);
  }

  /** What the log says of marks meanwhile. */
  private static List<String> logged(Runnable what) {
    List<String> said = new ArrayList<>();
    AppenderSkeleton appender =
        new AppenderSkeleton() {
          @Override
          protected void append(LoggingEvent event) {
            said.add(event.getRenderedMessage());
          }

          @Override
          public boolean requiresLayout() {
            return false;
          }

          @Override
          public void close() {}
        };
    Logger logger = Logger.getLogger(SocketMark.class);
    logger.addAppender(appender);
    try {
      what.run();
    } finally {
      logger.removeAppender(appender);
    }
    return said;
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

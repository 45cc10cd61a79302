package io.trunkline.hadoop.mirror;

import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Field;
import java.util.Set;
import org.apache.hadoop.hdfs.net.Peer;
import org.apache.hadoop.util.Daemon;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The connection on which a DataNode receives what it passes on. Stock code reads it, opens the
 * next one and writes there on one thread, that of its DataXceiver; only private fields of that
 * know of it, which are the same in Hadoop 3.3, 3.4 and 3.5.
 *
 * @param ends its ends
 * @param in what stock code reads it from
 */
record Upstream(Ends ends, InputStream in) {
  private static final Logger LOG = LoggerFactory.getLogger(Upstream.class);
  private static final String DATA_XCEIVER = "org.apache.hadoop.hdfs.server.datanode.DataXceiver";

  /** Those over a TCP socket of stock code's own. */
  private static final Set<String> TCP_PEERS =
      Set.of("org.apache.hadoop.hdfs.net.BasicInetPeer", "org.apache.hadoop.hdfs.net.NioInetPeer");

  private static final Fields FIELDS = Fields.find();

  /** Of DataXceiver; {@code lack} says which could not be had, null when all are there. */
  private record Fields(Field peer, Field out, Field remote, Field local, String lack) {
    static Fields find() {
      try {
        Class<?> type = Class.forName(DATA_XCEIVER, false, Upstream.class.getClassLoader());
        return new Fields(
            field(type, "peer"),
            field(type, "socketOut"),
            field(type, "remoteAddress"),
            field(type, "localAddress"),
            null);
      } catch (ReflectiveOperationException | RuntimeException e) {
        return new Fields(null, null, null, null, e.toString());
      }
    }

    private static Field field(Class<?> type, String name) throws NoSuchFieldException {
      Field field = type.getDeclaredField(name);
      field.setAccessible(true);
      return field;
    }
  }

  /**
   * Whether it can be told at all.
   *
   * @throws IOException when this Hadoop's DataXceiver is another one
   */
  static void check() throws IOException {
    if (FIELDS.lack() != null) {
      throw new IOException(
          "DataXceiver of this version of Hadoop does not tell its connection: " + FIELDS.lack());
    }
  }

  /**
   * The connection of this thread's DataXceiver, where switches could copy it: plain TCP from its
   * first byte on. One that began with a handshake of SASL, or goes by another transport or a Unix
   * domain socket, has other bytes than the next one.
   *
   * @return the connection, null where there is none such
   */
  static Upstream ofThisThread() {
    if (FIELDS.lack() != null || !(Thread.currentThread() instanceof Daemon daemon)) {
      return null;
    }
    Runnable xceiver = daemon.getRunnable();
    return xceiver == null || !xceiver.getClass().getName().equals(DATA_XCEIVER)
        ? null
        : of(xceiver);
  }

  private static Upstream of(Object xceiver) {
    try {
      Peer peer = (Peer) FIELDS.peer().get(xceiver);
      if (peer == null
          || !TCP_PEERS.contains(peer.getClass().getName())
          || FIELDS.out().get(xceiver) != peer.getOutputStream()) {
        return null;
      }
      Ends ends =
          new Ends(
              Ends.parse((String) FIELDS.remote().get(xceiver)),
              Ends.parse((String) FIELDS.local().get(xceiver)));
      return new Upstream(ends, peer.getInputStream());
    } catch (IllegalAccessException | IOException e) {
      LOG.debug("mirror: a connection is not reported", e);
      return null;
    }
  }
}

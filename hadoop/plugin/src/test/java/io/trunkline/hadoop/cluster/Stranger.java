package io.trunkline.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.ndn.Names;
import io.trunkline.hadoop.ndn.Native;
import io.trunkline.hadoop.ndn.NdnException;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.ndn.wire.SegmentHeader;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.net.URI;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;

/**
 * Somebody who reaches a router and has no token. Writes packets by hand, and takes any Data that
 * comes: the native library would refuse what it cannot verify.
 */
final class Stranger {
  private static final int INTEREST = 0x05;
  private static final int DATA = 0x06;
  private static final int NAME = 0x07;
  private static final int CAN_BE_PREFIX = 0x21;
  private static final int NONCE = 0x0a;
  private static final int LIFETIME = 0x0c;
  private static final int LP_PACKET = 0x64;
  private static final int LP_FRAGMENT = 0x50;
  private static final int LP_NACK = 800;

  /** So long an answer is waited for that should not come. */
  private static final int SILENT_MS = 1000;

  private static final Names NAMES = new Names("/hadoop");

  private final URI face;
  private final Random random = new Random();

  Stranger(TestRouter router) {
    face = URI.create(router.face());
  }

  /** What anybody can ask for of a block, but its segments. */
  static List<String> plainNames(ExtendedBlock block) {
    String version = version(block);
    return List.of(
        NAMES.metadata(block.getBlockPoolId(), block.getBlockId()),
        version + "/32=manifest/seg=0",
        version + "/32=content-key");
  }

  /** Asks for all that there may be of a block, at once, as nothing says that nothing comes. */
  void getsNothing(ExtendedBlock block) throws Exception {
    ExecutorService pool = Executors.newCachedThreadPool();
    try {
      Map<String, Future<byte[]>> asked = new LinkedHashMap<>();
      for (String name : plainNames(block)) {
        asked.put(name, pool.submit(() -> ask(name, SILENT_MS)));
      }
      asked.put("a segment", pool.submit(() -> firstSegment(block, SILENT_MS)));
      for (Map.Entry<String, Future<byte[]>> one : asked.entrySet()) {
        assertNull(one.getValue().get(), one.getKey());
      }
    } finally {
      pool.shutdown();
    }
  }

  private static String version(ExtendedBlock block) {
    return NAMES.version(block.getBlockPoolId(), block.getBlockId(), block.getGenerationStamp());
  }

  /**
   * Asks for a block's first segment, by a forwarder of its own: a router sends packets that large
   * to none but those that have agreed to take them.
   *
   * @return checksums and data, null when nothing came
   */
  byte[] firstSegment(ExtendedBlock block, int ms) throws Exception {
    Configuration conf = TestCluster.conf();
    conf.set("trunkline.ndn.face", face.toString());
    conf.setInt("trunkline.ndn.window.segments", 62);
    try (NdnNode node = NdnNode.acquire(Settings.from(conf), null)) {
      long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
      while (!node.routerUp()) {
        assertTrue(System.nanoTime() - deadline < 0, "the router is not there");
        TimeUnit.MILLISECONDS.sleep(20);
      }
      long pull = Native.pullOpen(node.handle(), version(block), 64512, 0, 1, false, 0, null, 0);
      try {
        byte[] header = new byte[SegmentHeader.BYTES];
        byte[] body = new byte[SegmentHeader.MAX_BODY_BYTES];
        int length = Native.pullTake(pull, 0, header, body, 0, body.length, null, 0, ms);
        return length < 0 ? null : Arrays.copyOf(body, length);
      } catch (NdnException e) {
        return null;
      } finally {
        Native.pullClose(pull);
      }
    }
  }

  /**
   * Asks once.
   *
   * @return the Data packet that came, null when it was a Nack or the time was over
   */
  byte[] ask(String name, int ms) throws IOException {
    long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ms);
    try (Socket socket = new Socket(face.getHost(), face.getPort())) {
      socket.getOutputStream().write(interest(name, ms));
      DataInputStream in = new DataInputStream(socket.getInputStream());
      while (true) {
        long leftMs = TimeUnit.NANOSECONDS.toMillis(deadline - System.nanoTime());
        if (leftMs <= 0) {
          return null;
        }
        socket.setSoTimeout((int) leftMs);
        int type = number(in);
        byte[] value = new byte[number(in)];
        in.readFully(value);
        if (type == DATA) {
          return value;
        }
        if (type == LP_PACKET) {
          ByteBuffer fields = ByteBuffer.wrap(value);
          while (fields.hasRemaining()) {
            int field = number(fields);
            int length = number(fields);
            ByteBuffer content = fields.slice(fields.position(), length);
            fields.position(fields.position() + length);
            if (field == LP_NACK) {
              return null;
            }
            if (field == LP_FRAGMENT && content.get(0) == DATA) {
              byte[] data = new byte[length];
              content.get(data);
              return data;
            }
          }
        }
      }
    } catch (SocketTimeoutException e) {
      return null;
    }
  }

  private byte[] interest(String name, int ms) {
    ByteArrayOutputStream components = new ByteArrayOutputStream();
    for (String component : name.substring(1).split("/")) {
      int equals = component.indexOf('=');
      String kind = equals < 0 ? "8" : component.substring(0, equals);
      String value = component.substring(equals + 1);
      if (kind.equals("v") || kind.equals("seg")) {
        put(components, kind.equals("v") ? 54 : 50, number(Long.parseLong(value)));
      } else {
        put(components, Integer.parseInt(kind), value.getBytes(StandardCharsets.US_ASCII));
      }
    }
    byte[] nonce = new byte[4];
    random.nextBytes(nonce);
    ByteArrayOutputStream fields = new ByteArrayOutputStream();
    put(fields, NAME, components.toByteArray());
    put(fields, CAN_BE_PREFIX, new byte[0]);
    put(fields, NONCE, nonce);
    put(fields, LIFETIME, number(ms));
    ByteArrayOutputStream packet = new ByteArrayOutputStream();
    put(packet, INTEREST, fields.toByteArray());
    return packet.toByteArray();
  }

  private static byte[] number(long value) {
    if (value < 1 << 8) {
      return new byte[] {(byte) value};
    }
    if (value < 1 << 16) {
      return ByteBuffer.allocate(Short.BYTES).putShort((short) value).array();
    }
    return value < 1L << 32
        ? ByteBuffer.allocate(Integer.BYTES).putInt((int) value).array()
        : ByteBuffer.allocate(Long.BYTES).putLong(value).array();
  }

  private static void put(ByteArrayOutputStream to, int type, byte[] value) {
    to.write(type);
    if (value.length >= 253) {
      to.write(253);
      to.write(value.length >> 8);
    }
    to.write(value.length);
    to.writeBytes(value);
  }

  private static int number(DataInputStream in) throws IOException {
    int first = in.readUnsignedByte();
    return first < 253 ? first : first == 253 ? in.readUnsignedShort() : in.readInt();
  }

  private static int number(ByteBuffer in) {
    int first = in.get() & 0xFF;
    return first < 253 ? first : first == 253 ? in.getShort() & 0xFFFF : in.getInt();
  }
}

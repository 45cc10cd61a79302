package io.trunkline.hadoop.mirror;

import io.trunkline.hadoop.library.NativeSockets;
import io.trunkline.hadoop.library.ShortWait;
import io.trunkline.hadoop.wire.HeadReader;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Field;
import java.nio.ByteBuffer;
import java.nio.channels.ReadableByteChannel;
import java.nio.channels.SocketChannel;
import org.apache.hadoop.net.SocketInputStream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What a DataNode reads a block from, which wakes it twice a packet: when the packet begins, and
 * when the rest has come. Stock code is woken for each segment or few; it does nothing with a
 * packet before it has all of it, so that at a link's rate most of a relay's processor time went
 * into being woken.
 *
 * <p>Nothing ever waits for more than the packet that has begun. The kernel wakes its reader sooner
 * where there is no room for the rest.
 */
final class WholePackets implements ReadableByteChannel {
  private static final Logger LOG = LoggerFactory.getLogger(WholePackets.class);

  /** As a connection begins: any byte wakes. */
  private static final int ANY = 1;

  /** Below that a part is waited for as stock code does: it has mostly come with what is here. */
  private static final int LEAST = 2048;

  private static final String CHANNEL = "channel";

  /**
   * On a slow link each part of a large packet tells stock code that the sender lives, whose time
   * begins anew with it: 60 s by default for this much.
   */
  private static final int MOST = 64 << 10;

  private final SocketChannel real;

  /** The stock reader that reads from this, which a stream has. */
  private final Object reader;

  private final HeadReader heads = new HeadReader();
  private final ShortWait shortWait = new ShortWait();

  /** The handle; 0 once nothing is to be set any more. */
  private long lowWater;

  /** What has not come of the packet that has begun; 0 between packets. */
  private int rest;

  private int mark = ANY;

  /** Whether the last read took all that had come: the next one waits before it looks. */
  private boolean drained;

  private WholePackets(Object reader, SocketChannel real) throws IOException {
    this.reader = reader;
    this.real = real;
    this.lowWater = NativeSockets.lowWaterOpen(real);
    if (!real.isOpen()) {
      NativeSockets.lowWaterClose(lowWater);
      throw new IOException("the connection is closed");
    }
  }

  /**
   * Has a stream of stock code read from one. Only private fields of that lead to its channel,
   * which are the same in Hadoop 3.3, 3.4 and 3.5.
   *
   * @param in the stream, whose next byte to be read begins a packet; on the thread that reads it
   * @return what it reads from, until that is told to {@link #end}; null where the stream is read
   *     as stock code does
   */
  static WholePackets on(InputStream in) {
    if (!(in instanceof SocketInputStream)) {
      return null;
    }
    try {
      Object reader = field(SocketInputStream.class, "reader").get(in);
      Field channel = field(reader.getClass(), CHANNEL);
      if (!(channel.get(reader) instanceof SocketChannel real)) {
        return null;
      }
      WholePackets packets = new WholePackets(reader, real);
      try {
        channel.set(reader, packets);
      } catch (ReflectiveOperationException | RuntimeException e) {
        packets.release();
        throw e;
      }
      return packets;
    } catch (ReflectiveOperationException | IOException | RuntimeException | LinkageError e) {
      LOG.debug("mirror: a connection is read as stock code does", e);
      return null;
    }
  }

  private static Field field(Class<?> type, String name) throws NoSuchFieldException {
    Field field = type.getDeclaredField(name);
    field.setAccessible(true);
    return field;
  }

  @Override
  public int read(ByteBuffer to) throws IOException {
    int from = to.position();
    int count;
    try {
      count = drained ? 0 : real.read(to);
      if (count == 0 && to.hasRemaining()) {
        drained = false;
        expect();
        if (shortWait.readable(real)) {
          count = real.read(to);
        }
      }
    } catch (IOException e) {
      release(); // the connection may have been closed, which is to be seen at its other end
      throw e;
    }
    if (count > 0) {
      drained = to.hasRemaining();
      follow(to.duplicate().flip().position(from));
    } else if (count < 0) {
      release();
    }
    return count;
  }

  private synchronized void follow(ByteBuffer come) {
    try {
      while (lowWater != 0 && come.hasRemaining()) {
        if (rest == 0) {
          var head = heads.accept(come);
          rest = head == null ? 0 : head.bodyLength();
        }
        int part = Math.min(rest, come.remaining());
        come.position(come.position() + part);
        rest -= part;
      }
    } catch (IOException e) {
      LOG.debug("mirror: what comes is no packet, as stock code will say", e);
      release();
    }
  }

  /** Says of what comes next how much is to wake the reader. */
  private synchronized void expect() {
    int wanted = rest < LEAST ? ANY : Math.min(rest, MOST);
    if (lowWater != 0 && wanted != mark) {
      set(wanted);
    }
  }

  private void set(int bytes) {
    try {
      NativeSockets.lowWaterSet(lowWater, bytes);
      mark = bytes;
    } catch (IOException e) {
      LOG.debug("mirror: a connection is read as stock code does", e);
      NativeSockets.lowWaterClose(lowWater);
      lowWater = 0;
      if (mark != ANY) {
        close(real); // rather than that its reader is never woken
      }
    }
  }

  private static void close(SocketChannel channel) {
    try {
      channel.close();
    } catch (IOException e) {
      LOG.debug("mirror: closed", e);
    }
  }

  /** Stock code reads from the connection again, any byte of which wakes it. */
  void end() {
    release();
    try {
      Field channel = field(reader.getClass(), CHANNEL);
      if (channel.get(reader) == this) {
        channel.set(reader, real);
      }
    } catch (ReflectiveOperationException e) {
      LOG.debug("mirror: reads go on through here", e);
    }
  }

  private synchronized void release() {
    if (lowWater != 0 && mark != ANY) {
      set(ANY);
    }
    if (lowWater != 0) {
      NativeSockets.lowWaterClose(lowWater);
      lowWater = 0;
    }
  }

  @Override
  public boolean isOpen() {
    return real.isOpen();
  }

  @Override
  public void close() throws IOException {
    release();
    real.close();
  }
}

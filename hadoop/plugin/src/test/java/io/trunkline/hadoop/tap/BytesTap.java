package io.trunkline.hadoop.tap;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.WritableByteChannel;

/** A tap on a connection that takes whatever it is given: a tap channel's part, without sockets. */
public final class BytesTap implements TapConnection, AutoCloseable {
  private final WritableByteChannel wire;
  private final Object readLock = new Object();
  private final Tap tap;
  private boolean used;
  private boolean moved;

  /** What goes out goes to a channel that takes all of it. */
  public BytesTap(TapListener listener, WritableByteChannel wire) {
    this.wire = wire;
    tap = new Tap(listener, this);
  }

  /** What stock code writes at once. */
  public synchronized void write(byte[] stock) throws IOException {
    write(stock, stock.length);
  }

  /** What stock code writes at once, from the beginning of an array. */
  public synchronized void write(byte[] stock, int length) throws IOException {
    ByteBuffer in = ByteBuffer.wrap(stock, 0, length);
    while (in.hasRemaining()) {
      if (tap.passing() > 0) {
        in.limit((int) Math.min(length, in.position() + Math.min(length, tap.passing())));
        used = true;
        tap.passed(wire.write(in));
        in.limit(length);
      } else {
        tap.accept(in);
        drain();
        tap.sent();
      }
    }
  }

  /** What comes back; returns what stock code reads of it. */
  public byte[] answered(byte[] bytes) throws IOException {
    synchronized (readLock) {
      ByteBuffer in = ByteBuffer.wrap(bytes.clone());
      byte[] stock = new byte[tap.answered(in, 0, bytes.length)];
      in.get(stock);
      return stock;
    }
  }

  /** Whether the listener went to another connection. */
  public boolean moved() {
    return moved;
  }

  /** Whether all that follows passes as it is. */
  public boolean passesAll() {
    return tap.passing() == Long.MAX_VALUE;
  }

  private void drain() throws IOException {
    used |= !tap.output().isEmpty();
    if (!tap.output().drainTo(wire)) {
      throw new AssertionError("takes all");
    }
  }

  @Override
  public InetSocketAddress local() {
    return new InetSocketAddress(InetAddress.getLoopbackAddress(), 1);
  }

  @Override
  public InetSocketAddress remote() {
    return new InetSocketAddress(InetAddress.getLoopbackAddress(), 2);
  }

  @Override
  public void moveTo(Connector other) {
    if (used) {
      throw new AssertionError("something has been sent on this connection already");
    }
    moved = true;
  }

  @Override
  public synchronized void send(Refill refill) throws IOException {
    boolean more;
    do {
      more = refill.next(tap.output());
      drain();
    } while (more);
  }

  @Override
  public void close() {
    tap.close();
  }
}

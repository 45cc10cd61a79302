package io.trunkline.hadoop.tap;

import io.trunkline.hadoop.wire.HeadReader;
import io.trunkline.hadoop.wire.OpHeader;
import io.trunkline.hadoop.wire.PacketFramer;
import io.trunkline.hadoop.wire.PacketHead;
import io.trunkline.hadoop.wire.WriteOp;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Sits where a DFSClient or a DataNode writes on a data-transfer connection that it has opened. It
 * reads along until the op header is whole, asks a {@link TapListener} what becomes of the
 * connection, and goes on as the {@link WriteHandler} wants that it is answered with. It does no
 * I/O: bytes in, bytes out, or left with the caller to pass as they are.
 *
 * <pre>
 *   HEADER --no write, or PassThrough--> PASS
 *      |---HeadWatch-------> HEADS ------shown enough-----^
 *      '---PacketRewriter--> PACKETS
 * </pre>
 */
public final class Tap implements PacketFramer.Sink, AutoCloseable {
  private enum State {
    /** The op header is not whole. */
    HEADER,
    /** Packets pass as they are; the head of each is shown before. */
    HEADS,
    /** Something else goes in place of each packet. */
    PACKETS,
    /** All passes as it is. */
    PASS
  }

  private static final int INITIAL_HEADER_BYTES = 1024;
  private static final long ALL = Long.MAX_VALUE;

  private final TapListener listener;
  private final TapConnection connection;
  private final TapOutput out = new TapOutput();
  private final HeadReader heads = new HeadReader();
  private final PacketFramer framer = new PacketFramer();
  private final AtomicBoolean handlerClosed = new AtomicBoolean();
  private ByteBuffer header = ByteBuffer.allocate(INITIAL_HEADER_BYTES);
  private volatile State state = State.HEADER;
  private volatile WriteHandler handler;
  private volatile boolean closed;

  /** Bytes to come that pass as they are. */
  private long passing;

  private HeadWatch watch;
  private PacketRewriter rewriter;

  /** Is told when the header has gone out, and forgotten then. */
  private PassThrough toBeTold;

  private volatile WriteOp op;

  /**
   * A tap on a new connection.
   *
   * @param listener decides what becomes of it
   * @param connection the connection
   */
  public Tap(TapListener listener, TapConnection connection) {
    this.listener = listener;
    this.connection = connection;
  }

  /**
   * What is due on the connection, before anything that stock code writes next.
   *
   * @return the bytes, to be drained
   */
  public TapOutput output() {
    return out;
  }

  /**
   * How much of what stock code writes next is to be sent as it is.
   *
   * @return bytes, {@link Long#MAX_VALUE} for all; 0 when {@link #accept} is to take the next ones
   */
  public long passing() {
    return passing;
  }

  /**
   * Bytes have been sent as they are.
   *
   * @param bytes how many, at most {@link #passing}
   */
  public void passed(int bytes) {
    if (passing != ALL) {
      passing -= bytes;
    }
  }

  /**
   * Takes bytes that stock code writes, some of them: up to the end of the op header, of a packet
   * or of its head at most, so that the caller can send what is due for it before more is taken.
   *
   * @param in the bytes; its position moves past those taken
   * @throws IOException when the bytes are no packets, or the connection has failed
   */
  public void accept(ByteBuffer in) throws IOException {
    switch (state) {
      case HEADER -> acceptHeader(in);
      case HEADS -> acceptHead(in);
      case PACKETS -> framer.accept(in, this);
      case PASS -> throw new IllegalStateException("all passes as it is");
    }
  }

  private void acceptHeader(ByteBuffer in) throws IOException {
    if (header.remaining() < in.remaining()) {
      header.flip();
      header =
          ByteBuffer.allocate(Math.max(2 * header.capacity(), header.limit() + in.remaining()))
              .put(header);
    }
    header.put(in);
    ByteBuffer seen = header.duplicate().flip();
    switch (OpHeader.look(seen)) {
      case INCOMPLETE -> {
        // more will come
      }
      case OTHER -> {
        listener.other(connection);
        out.reserve(seen.remaining()).put(seen);
        header = null;
        pass();
      }
      case WRITE -> {
        op = OpHeader.parseWrite(seen);
        // The header ends in these bytes; what came with it is taken when it has been sent.
        in.position(in.position() - seen.remaining());
        header = null;
        begin(listener.write(op, connection, out));
        out.reserve(op.header().length).put(op.header());
      }
    }
  }

  private void begin(WriteHandler chosen) {
    handler = chosen;
    if (closed) {
      // Whoever closed may have come before there was anything to close.
      closeHandler();
    }
    if (chosen instanceof HeadWatch shown) {
      watch = shown;
      state = State.HEADS;
    } else if (chosen instanceof PacketRewriter writes) {
      rewriter = writes;
      state = State.PACKETS;
    } else {
      toBeTold = (PassThrough) chosen;
      pass();
    }
  }

  /** All that was due on the connection so far has left. */
  void sent() {
    if (toBeTold != null) {
      PassThrough told = toBeTold;
      toBeTold = null;
      told.headerSent();
    }
  }

  private void pass() {
    passing = ALL;
    state = State.PASS;
  }

  private void acceptHead(ByteBuffer in) throws IOException {
    PacketHead head = heads.accept(in);
    if (head == null) {
      return;
    }
    boolean more = watch.head(head);
    out.reserve(head.bytes().length).put(head.bytes());
    if (more) {
      passing = head.bodyLength();
    } else {
      pass();
    }
  }

  @Override
  public void packet(PacketHead head, byte[] body, int off) throws IOException {
    rewriter.packet(head, body, off, out);
  }

  /**
   * Bytes have come back on the connection.
   *
   * @param in holds them, and afterwards what stock code is to read of them, from the same place on
   * @param from where they begin
   * @param to where they end
   * @return how many bytes stock code is to read
   * @throws IOException when the connection has failed
   */
  public int answered(ByteBuffer in, int from, int to) throws IOException {
    WriteHandler told = handler;
    return told == null ? to - from : told.answered(in, from, to);
  }

  @Override
  public void close() {
    closed = true;
    closeHandler();
  }

  private void closeHandler() {
    WriteHandler open = handler;
    if (open != null && handlerClosed.compareAndSet(false, true)) {
      open.close();
    }
  }

  /**
   * What the tap is doing, for logs.
   *
   * @return the state and the write
   */
  @Override
  public String toString() {
    WriteOp write = op;
    return state + (write == null ? "" : " " + write.id() + " " + write.stage());
  }
}

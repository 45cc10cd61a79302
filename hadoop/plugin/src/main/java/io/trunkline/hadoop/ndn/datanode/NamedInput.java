package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.ndn.Names;
import io.trunkline.hadoop.ndn.secure.SecureSession;
import io.trunkline.hadoop.ndn.wire.ControlRecord;
import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.ndn.wire.SecureHello;
import io.trunkline.hadoop.ndn.wire.WriteKey;
import io.trunkline.hadoop.ndn.write.Inflow;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.wire.OpHeader;
import io.trunkline.hadoop.wire.PacketHead;
import io.trunkline.hadoop.wire.WriteOp;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.SocketTimeoutException;
import java.nio.channels.ClosedChannelException;
import java.util.Arrays;
import java.util.OptionalLong;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * What stock DataXceiver reads from a connection to the plug-in: the stock byte stream, put
 * together again from control records and pulled bodies.
 *
 * <pre>
 *   HELLO --handshake, or none--> PREAMBLE ---> HEADER ---> RECORD
 *   RECORD <---> BY_NAME, READ_AHEAD or INLINE
 * </pre>
 *
 * A packet's head is handed on alone, so that stock code asks for the body with the array it wants
 * it in, and the body is pulled straight into that array.
 */
final class NamedInput extends InputStream {
  /** The other direction of the connection. */
  interface Answers extends Inflow.Upstream {
    /** From here on answers go in frames. */
    void begin();
  }

  /** Makes connections secure. */
  interface Security {
    /**
     * Whether connections are to be made secure.
     *
     * @return true when others are refused
     */
    boolean required();

    /**
     * Answers the handshake of a connection.
     *
     * @param hello what the other end has said
     * @return the session that came of it, which the input closes
     * @throws IOException when the other end has not the password of the token that it names
     */
    SecureSession answer(SecureHello hello) throws IOException;

    /**
     * The other end has shown that it has a right to be here: its first record has opened.
     *
     * @throws IOException when the connection has gone meanwhile
     */
    default void known() throws IOException {}
  }

  /** Connections stay as they are. */
  private static final Security NONE =
      new Security() {
        @Override
        public boolean required() {
          return false;
        }

        @Override
        public SecureSession answer(SecureHello hello) throws IOException {
          throw new IOException("this DataNode has no block tokens");
        }
      };

  private enum State {
    /** It may begin with a handshake. */
    HELLO,
    PREAMBLE,
    HEADER,
    RECORD,
    /** A body is due that is to be pulled. */
    BY_NAME,
    /** A body is due that was read from the connection before its turn. */
    READ_AHEAD,
    /** A body is due that follows on the connection. */
    INLINE
  }

  /** What there is once it is known which block is written. */
  private record Write(Inflow inflow, ControlRecords records, BodyPuller puller, WriteKey key) {
    void close() {
      puller.close();
      inflow.close();
      records.close();
      if (key != null) {
        key.wipe();
      }
    }
  }

  /**
   * How long a peer may take to say what its connection is for. Each byte of it renews the read
   * timeout, so that without this a few bytes an hour would keep a thread of the DataNode.
   */
  private static final long GREETING_NANOS = TimeUnit.SECONDS.toNanos(60);

  /** The same for the handshake: nobody has shown a right to be here before it is over. */
  static final int HANDSHAKE_MS = 10_000;

  private final ControlInput control;
  private final LongSupplier nanoClock;
  private final Names names;
  private final BodyPuller.Maker pullers;
  private final Answers answers;
  private final Security security;
  private final TransferStats stats = TransferStats.get();
  private State state = State.HELLO;

  /** Null unless the connection has been made secure. */
  private volatile SecureSession session;

  /** The token by which it was made secure. */
  private byte[] identifier;

  /** Why the connection is refused; null while it is not. */
  private IOException refusal;

  /** Unset until somebody waits for the greeting. */
  private OptionalLong greetingBegan = OptionalLong.empty();

  private Preamble preamble;

  /** Null until the op header is read. */
  private volatile Write write;

  private volatile boolean closed;
  private ControlRecord record;

  /** The body of the record, in READ_AHEAD. */
  private byte[] body;

  /** Bytes that are due to the reader before the state says what comes. */
  private byte[] due = new byte[0];

  private int dueAt;
  private int dueEnd;
  private byte[] spill = new byte[0];

  /** Bytes of the body that are still to be read, in INLINE. */
  private int inlineLeft;

  /**
   * An input.
   *
   * @param control the connection
   * @param names names of the cluster
   * @param pullers make what pulls bodies
   * @param answers the other direction of the connection
   */
  NamedInput(ControlInput control, Names names, BodyPuller.Maker pullers, Answers answers) {
    this(control, names, pullers, answers, NONE, System::nanoTime);
  }

  /** The same, with a clock of monotonic nanoseconds, and what makes connections secure. */
  NamedInput(
      ControlInput control,
      Names names,
      BodyPuller.Maker pullers,
      Answers answers,
      Security security,
      LongSupplier nanoClock) {
    this.nanoClock = nanoClock;
    this.security = security;
    this.answers = answers;
    this.control = control;
    this.names = names;
    this.pullers = pullers;
  }

  @Override
  public int read() throws IOException {
    byte[] one = new byte[1];
    int count = read(one, 0, 1);
    return count < 0 ? -1 : one[0] & 0xFF;
  }

  @Override
  public int read(byte[] to, int off, int length) throws IOException {
    if (length == 0) {
      return 0;
    }
    while (true) {
      if (dueAt < dueEnd) {
        int count = Math.min(length, dueEnd - dueAt);
        System.arraycopy(due, dueAt, to, off, count);
        dueAt += count;
        return count;
      }
      switch (state) {
        case HELLO -> {
          secured();
          if (refusal != null) {
            throw refusal;
          }
        }
        case PREAMBLE -> {
          if (!readPreamble()) {
            return -1;
          }
        }
        case HEADER -> readHeader();
        case RECORD -> {
          if (!readRecord()) {
            return -1;
          }
        }
        case BY_NAME -> {
          int count = readByName(to, off, length);
          if (count > 0) {
            return count;
          }
        }
        case READ_AHEAD -> {
          state = State.RECORD;
          give(body, body.length);
          body = null;
        }
        case INLINE -> {
          return readInline(to, off, length);
        }
      }
    }
  }

  /**
   * Whether the connection has been made secure; waits for its handshake. What goes wrong with that
   * is thrown to whoever reads.
   */
  boolean secured() {
    if (state == State.HELLO && refusal == null) {
      try {
        readHello();
        state = State.PREAMBLE;
      } catch (IOException e) {
        refusal = e;
      }
    }
    return session != null && refusal == null;
  }

  private void readHello() throws IOException {
    SecureHello.Kind kind;
    while ((kind = SecureHello.look(control.buffer())) == SecureHello.Kind.UNKNOWN) {
      if (!moreOfGreeting()) {
        // It has ended before it has said anything, or in its preamble.
        return;
      }
    }
    if (kind == SecureHello.Kind.OTHER) {
      if (security.required()) {
        throw new IOException("connection is not secured by a block token");
      }
      return;
    }
    SecureHello hello;
    while ((hello = SecureHello.decode(control.buffer())) == null) {
      if (!moreOfGreeting()) {
        throw new EOFException("connection ended in its handshake");
      }
    }
    SecureSession made = security.answer(hello);
    session = made;
    control.secure(made);
    identifier = hello.identifier();
    stats.add(Counter.SECURED_CONNECTIONS);
    if (closed) {
      close();
      throw new ClosedChannelException();
    }
  }

  /** Returns false when the connection ends before it began. */
  private boolean readPreamble() throws IOException {
    while ((preamble = Preamble.decode(control.buffer())) == null) {
      if (!moreOfGreeting()) {
        if (control.buffer().hasRemaining()) {
          throw new EOFException("connection ended in its preamble");
        }
        return false;
      }
    }
    if (preamble.key() != null && session == null) {
      throw new IOException("preamble with a key on a connection that is not secure");
    }
    control.wipeTaken();
    security.known();
    state = State.HEADER;
    return true;
  }

  /** Waits for more of the preamble or of the op header. */
  private boolean moreOfGreeting() throws IOException {
    // Whoever has only shaken hands may be replaying what others said: the preamble is in a record.
    boolean stranger = security.required() && preamble == null;
    long limit = stranger ? TimeUnit.MILLISECONDS.toNanos(HANDSHAKE_MS) : GREETING_NANOS;
    long now = nanoClock.getAsLong();
    if (greetingBegan.isEmpty()) {
      greetingBegan = OptionalLong.of(now);
    } else if (now - greetingBegan.getAsLong() >= limit) {
      throw new SocketTimeoutException(
          "connection has not said in "
              + TimeUnit.NANOSECONDS.toSeconds(limit)
              + " s what it is for");
    }
    return control.more();
  }

  private void readHeader() throws IOException {
    while (OpHeader.look(control.buffer()) == OpHeader.Kind.INCOMPLETE) {
      if (!moreOfGreeting()) {
        throw new EOFException("connection ended in its op header");
      }
    }
    if (OpHeader.look(control.buffer()) != OpHeader.Kind.WRITE) {
      throw new IOException("connection to the plug-in carries no write");
    }
    WriteOp op = OpHeader.parseWrite(control.buffer());
    control.wipeTaken();
    if (op.header().length > OpHeader.MAX_NAMED_BYTES) {
      // Clients of ours send none; passed on, it would be held against the next DataNode.
      throw new IOException("op header of " + op.header().length + " bytes");
    }
    String expected = names.version(op.pool(), op.block(), op.genstamp());
    if (!preamble.name().equals(expected)) {
      throw new IOException(
          "write of "
              + expected
              + " comes with the name "
              + preamble.name()
              + "; both sides need"
              + " the same trunkline.ndn.root");
    }
    byte[] named = op.token() == null ? null : op.token().identifier();
    if (session != null && !Arrays.equals(identifier, named)) {
      throw new IOException("write of " + expected + " with another token than its connection's");
    }
    answers.begin();
    Inflow inflow = Inflow.open(op, preamble, answers);
    ControlRecords records = new ControlRecords(control, inflow);
    write = new Write(inflow, records, pullers.make(op, preamble, records), preamble.key());
    if (closed) {
      // Whoever closed may have come before there was anything to end.
      close();
      throw new ClosedChannelException();
    }
    stats.add(Counter.NAMED_RECEIVES);
    give(op.header(), op.header().length);
    state = State.RECORD;
  }

  /** Returns false when the connection ends where a record would begin. */
  private boolean readRecord() throws IOException {
    ControlRecords.Item item = write.records().next();
    if (item == null) {
      return false;
    }
    record = item.record();
    if (record.byName() && session != null && preamble.key() == null) {
      throw new IOException("record by name of a write whose segments have no key");
    }
    PacketHead head = record.head();
    write.inflow().received(record);
    give(head.bytes(), head.bytes().length);
    if (head.bodyLength() == 0) {
      state = State.RECORD;
    } else if (record.byName()) {
      state = State.BY_NAME;
    } else if (item.body() != null) {
      state = State.READ_AHEAD;
      body = item.body();
    } else {
      state = State.INLINE;
      inlineLeft = head.bodyLength();
    }
    return true;
  }

  private int readInline(byte[] to, int off, int length) throws IOException {
    int count = write.records().read(to, off, Math.min(length, inlineLeft));
    if (count < 0) {
      throw new EOFException("connection ended in a packet");
    }
    inlineLeft -= count;
    if (inlineLeft == 0) {
      state = State.RECORD;
    }
    return count;
  }

  /** Returns 0 when the body has been made due to the reader. */
  private int readByName(byte[] to, int off, int length) throws IOException {
    state = State.RECORD;
    int bodyLength = record.head().bodyLength();
    if (length >= bodyLength) {
      pull(to, off);
      return bodyLength;
    }
    if (spill.length < bodyLength) {
      spill = new byte[bodyLength];
    }
    pull(spill, 0);
    give(spill, bodyLength);
    return 0;
  }

  private void pull(byte[] to, int off) throws IOException {
    if (!write.puller().pull(record, to, off)) {
      write.inflow().cameInline(record);
    }
  }

  private void give(byte[] bytes, int length) {
    due = bytes;
    dueAt = 0;
    dueEnd = length;
  }

  /** Always 0: stock code is to come back with the array it wants the body in. */
  @Override
  public int available() {
    return 0;
  }

  /** Ends the pulls; the connection itself is the peer's to close. */
  @Override
  public void close() {
    closed = true;
    Write open = write;
    if (open != null) {
      open.close();
    }
    SecureSession made = session;
    if (made != null) {
      made.close();
    }
  }
}

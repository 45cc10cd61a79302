package io.trunkline.hadoop.ucx;

import io.trunkline.hadoop.conf.Setting;
import io.trunkline.hadoop.util.LogLimit;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.openucx.jucx.UcxUtils;
import org.openucx.jucx.ucp.UcpAmData;
import org.openucx.jucx.ucp.UcpAmRecvCallback;
import org.openucx.jucx.ucp.UcpConnectionRequest;
import org.openucx.jucx.ucp.UcpConstants;
import org.openucx.jucx.ucp.UcpEndpoint;
import org.openucx.jucx.ucp.UcpRequest;
import org.openucx.jucx.ucp.UcpWorker;
import org.openucx.jucx.ucs.UcsConstants;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The connections of one worker: takes frames in, hands what is due to UCX, looks at the clock. But
 * for {@link #due}, only who may call UCX may call it: see {@link IoWorker}.
 */
final class Connections implements UcpAmRecvCallback, DutyCycle.Work {
  static final Logger LOG = LoggerFactory.getLogger(Connections.class);

  /** UCX's id of our active messages. */
  static final int MESSAGE_ID = 0x54;

  /** UCX may forget the message. */
  static final int DONE = 0;

  private static final long TIMERS_NANOS = TimeUnit.MILLISECONDS.toNanos(20);

  private final UcxNode node;
  private final IoWorker worker;
  private final Map<Long, Connection> byToken = new HashMap<>();
  private final Map<Long, Connection> byEndpoint = new HashMap<>();
  private final Queue<StreamEnd> due = new ConcurrentLinkedQueue<>();

  /** Whether any is in there: asked at every spin, where a look into the queue costs more. */
  private volatile boolean anyDue;

  private final Set<StreamEnd> transferring = new LinkedHashSet<>();
  private final Set<Connection> frames = new LinkedHashSet<>();
  private final ArrayDeque<Connection> failing = new ArrayDeque<>();
  private final List<UcpRequest> closing = new ArrayList<>();
  private final Endings endings = new Endings();
  private final Sendings sendings = new Sendings();
  private final AtomicInteger opening = new AtomicInteger();
  private volatile boolean anyFailing;
  private volatile int streams;
  private final LogLimit lines = new LogLimit();

  Connections(UcxNode node, IoWorker worker) {
    this.node = node;
    this.worker = worker;
  }

  /** Begins to take frames. */
  void start() {
    worker.ucp().setAmRecvHandler(MESSAGE_ID, this, UcpConstants.UCP_AM_FLAG_PERSISTENT_DATA);
    worker.start(this);
  }

  // ---- what its parts share

  IoWorker worker() {
    return worker;
  }

  UcpWorker ucp() {
    return worker.ucp();
  }

  BufferPool pool() {
    return node.pool();
  }

  Counters counters() {
    return node.counters();
  }

  int messageBytes() {
    return node.settings().getInt(Setting.UCX_MESSAGE_BYTES);
  }

  long windowBytes() {
    return node.settings().get(Setting.UCX_WINDOW_BYTES);
  }

  int rendezvousBytes() {
    return node.settings().getInt(Setting.UCX_RENDEZVOUS_BYTES);
  }

  long connectNanos() {
    return TimeUnit.MILLISECONDS.toNanos(node.settings().get(Setting.UCX_CONNECT_MS));
  }

  long idleNanos() {
    return TimeUnit.MILLISECONDS.toNanos(node.settings().get(Setting.UCX_IDLE_MS));
  }

  long lingerNanos() {
    return idleNanos();
  }

  boolean takeStream() {
    return node.takeStream();
  }

  void returnStream() {
    counters().streamsOpen.decrementAndGet();
  }

  // ---- connections

  /** A connection has its endpoint. */
  void add(Connection connection) {
    byToken.put(connection.token(), connection);
    byEndpoint.put(connection.endpoint().getNativeId(), connection);
    counters().endpointsOpen.incrementAndGet();
  }

  /** A connection is gone; its endpoint still knows its name. */
  void remove(Connection connection) {
    byToken.remove(connection.token());
    UcpEndpoint endpoint = connection.endpoint();
    if (endpoint != null && byEndpoint.remove(endpoint.getNativeId(), connection)) {
      counters().endpointsOpen.decrementAndGet();
    }
    frames.remove(connection);
    node.removed(connection);
  }

  /** Somebody asks for a connection. */
  void accept(UcxListener listener, UcpConnectionRequest request) {
    counters().endpointsAccepted.increment();
    Connection.acceptor(this, listener, request).accept(request);
  }

  /** So many streams of its connections have come, or (negative) were closed. */
  void counted(int more) {
    streams += more;
  }

  /** Streams of all of its connections that are in use or being opened. Any thread. */
  int streams() {
    return streams + opening.get();
  }

  /** Somebody is about to open a stream, or (-1) has opened it or given up. Any thread. */
  void opening(int more) {
    opening.addAndGet(more);
  }

  /** An endpoint is being closed. */
  void closing(UcpRequest request) {
    closing.add(request);
  }

  // ---- what is due

  /** A stream has something to do. Any thread. */
  void due(StreamEnd stream) {
    due.add(stream);
    anyDue = true;
  }

  void transfers(StreamEnd stream) {
    transferring.add(stream);
  }

  void frames(Connection connection) {
    frames.add(connection);
  }

  void failing(Connection connection) {
    failing.add(connection);
    anyFailing = true;
  }

  /** The sender of a rendezvous is told that nobody wants it. */
  void refuse(long descriptor) {
    ucp().amDataRelease(descriptor);
  }

  /**
   * In this order: what is given up is done with, and what is done with makes room to send; a call
   * that sends may end transfers before it.
   */
  @Override
  public List<DutyCycle.Duty> duties() {
    Transfers transfers = new Transfers();
    return List.of(new Timers(), endings, transfers, sendings, transfers);
  }

  @Override
  public DutyCycle.Duty sending() {
    return sendings;
  }

  @Override
  public boolean pending() {
    return anyFailing || anyDue;
  }

  private final class Timers implements DutyCycle.Duty {
    private long timersNanos = System.nanoTime();

    @Override
    public boolean due(long nowNanos) {
      return nowNanos - timersNanos >= TIMERS_NANOS;
    }

    @Override
    public int run() {
      long now = System.nanoTime();
      timersNanos = now;
      for (Connection connection : byToken.values()) {
        connection.onTime(now);
      }
      return 0;
    }
  }

  private final class Endings implements DutyCycle.Duty {
    @Override
    public boolean due(long nowNanos) {
      return anyFailing || !closing.isEmpty();
    }

    @Override
    public int run() {
      int done = 0;
      for (Connection connection = failing.poll();
          connection != null;
          connection = failing.poll()) {
        LOG.debug("{} ends", connection);
        connection.end();
        done++;
      }
      anyFailing = false;
      if (!closing.isEmpty()) {
        closing.removeIf(UcpRequest::isCompleted);
      }
      return done;
    }
  }

  private final class Transfers implements DutyCycle.Duty {
    @Override
    public boolean due(long nowNanos) {
      for (StreamEnd stream : transferring) {
        if (stream.transferred()) {
          return true;
        }
      }
      return false;
    }

    @Override
    public int run() {
      int done = 0;
      for (Iterator<StreamEnd> all = transferring.iterator(); all.hasNext(); ) {
        StreamEnd stream = all.next();
        done += stream.reap();
        if (!stream.transferring()) {
          all.remove();
        }
      }
      return done;
    }
  }

  private final class Sendings implements DutyCycle.Duty {
    @Override
    public boolean due(long nowNanos) {
      return anyDue || !frames.isEmpty();
    }

    @Override
    public int run() {
      int done = 0;
      try {
        do {
          anyDue = false; // before a look, or what comes after it would not be seen
          for (StreamEnd stream = due.poll(); stream != null; stream = due.poll()) {
            done += stream.run();
          }
        } while (anyDue);
      } finally {
        if (!due.isEmpty()) {
          anyDue = true;
        }
      }
      if (!frames.isEmpty()) {
        frames.removeIf(Connection::sendFrames);
      }
      return done;
    }
  }

  /** What UCX keeps back nothing may announce, as where a queue in shared memory is full. */
  @Override
  public boolean unsent() {
    return !transferring.isEmpty() || !frames.isEmpty() || anyFailing;
  }

  // ---- frames

  @Override
  public int onReceive(long header, long headerBytes, UcpAmData message, UcpEndpoint reply) {
    try {
      Frame frame =
          headerBytes == Frame.BYTES
              ? Frame.read(UcxUtils.getByteBufferView(header, headerBytes))
              : null;
      if (frame == null) {
        throw new IOException("not a frame");
      }
      return receive(frame, message, reply);
    } catch (IOException e) {
      counters().framesRefused.increment();
      if (lines.allows()) {
        LOG.info("UCX: frame rejected: {}; more within a minute are only counted", e.getMessage());
      } else {
        LOG.trace("UCX: frame rejected", e);
      }
    } catch (RuntimeException | Error e) {
      // An exception must not meet the native code that called us.
      counters().framesRefused.increment();
      LOG.error("UCX: error in the plug-in", e);
    }
    return UcsConstants.STATUS.UCS_OK;
  }

  private int receive(Frame frame, UcpAmData message, UcpEndpoint reply) throws IOException {
    Greeting greeting = null;
    boolean greets = frame.type() == Frame.HELLO || frame.type() == Frame.WELCOME;
    if (greets) {
      greeting = greeting(message);
    } else if (frame.type() != Frame.DATA && message.getLength() != 0) {
      throw new IOException("data in a frame of type " + frame.type());
    }
    if (frame.type() == Frame.HELLO) {
      Connection asking = reply == null ? null : byEndpoint.get(reply.getNativeId());
      if (asking == null) {
        throw new IOException("HELLO without an endpoint");
      }
      asking.onHello(greeting);
      return DONE;
    }
    Connection connection = byToken.get(frame.token());
    if (connection == null) {
      throw new IOException("unknown token");
    }
    return connection.onFrame(frame, greeting, message);
  }

  private static Greeting greeting(UcpAmData message) throws IOException {
    Greeting greeting = null;
    if (message.isDataValid() && message.getLength() == Greeting.BYTES) {
      greeting =
          Greeting.read(UcxUtils.getByteBufferView(message.getDataAddress(), Greeting.BYTES));
    }
    if (greeting == null) {
      throw new IOException("greeting without sense");
    }
    return greeting;
  }

  // ---- the end

  /** Gives every connection up, telling the peers as far as that goes without waiting. */
  void endAll() {
    byEndpoint.values().forEach(Connection::leave);
    sendings.run();
    endings.run();
    for (Connection connection : new ArrayList<>(byEndpoint.values())) {
      connection.failLater(new IOException("UCX is being closed in this JVM"));
    }
    sendings.run();
    endings.run();
  }

  /** Whether UCX is done with every buffer and endpoint. */
  boolean idle() {
    return transferring.isEmpty() && closing.isEmpty();
  }
}

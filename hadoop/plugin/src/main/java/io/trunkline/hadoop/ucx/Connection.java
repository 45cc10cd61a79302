package io.trunkline.hadoop.ucx;

import io.trunkline.hadoop.util.Nonces;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Map;
import org.openucx.jucx.UcxException;
import org.openucx.jucx.ucp.UcpAmData;
import org.openucx.jucx.ucp.UcpConnectionRequest;
import org.openucx.jucx.ucp.UcpConstants;
import org.openucx.jucx.ucp.UcpEndpoint;
import org.openucx.jucx.ucp.UcpEndpointParams;
import org.openucx.jucx.ucp.UcpRequest;

/**
 * An endpoint to a peer and the streams over it. All but the documented few is the leader's of its
 * worker.
 *
 * <pre>
 *   connector  CONNECTING --WELCOME--> OPEN --idle, GOODBYE sent--> LEAVING --> GONE
 *   acceptor   CONNECTING --HELLO----> OPEN --idle for longer, GOODBYE sent--> LEAVING --> GONE
 *   both       OPEN --the JVM ends, GOODBYE sent--> LEAVING --> GONE
 *   both       OPEN --GOODBYE came--> GONE, and with it all streams
 *   both       any state --error, silence--> GONE
 * </pre>
 */
final class Connection {
  /** How far it is. */
  enum State {
    CONNECTING,
    OPEN,
    LEAVING,
    GONE
  }

  private static final int QUEUED_MOST = 1024;

  private final Connections connections;
  private final UcxListener listener;
  private final InetSocketAddress remote;
  private final long token;
  private final ControlFrames control = new ControlFrames();
  private final Map<Integer, StreamEnd> streams = new HashMap<>();
  private final Waiters changed = new Waiters();
  private UcpEndpoint endpoint;
  private int lastStream;
  private long peerToken;
  private long changedNanos = System.nanoTime();
  private long heardNanos = changedNanos;
  private IOException failingWith;

  private volatile State state = State.CONNECTING;
  private volatile IOException failure;
  private volatile int peerMessageBytes;
  private volatile long peerWindowBytes;
  private volatile InetSocketAddress local;

  private Connection(Connections connections, UcxListener listener, InetSocketAddress remote) {
    this.connections = connections;
    this.listener = listener;
    this.remote = remote;
    token = Nonces.next();
  }

  /** A connection to a listener; {@link #connect} makes it. */
  static Connection connector(Connections connections, InetSocketAddress remote) {
    return new Connection(connections, null, remote);
  }

  /** A connection that somebody asks for; {@link #accept} makes it. */
  static Connection acceptor(
      Connections connections, UcxListener listener, UcpConnectionRequest request) {
    InetSocketAddress client = request.getClientAddress();
    return new Connection(
        connections, listener, client == null ? new InetSocketAddress("0.0.0.0", 0) : client);
  }

  // ---- any thread

  State state() {
    return state;
  }

  IOException failure() {
    return failure;
  }

  InetSocketAddress remote() {
    return remote;
  }

  /** Our address, as far as it is known: as the peer sees us, or where we listen. */
  InetSocketAddress local() {
    return local;
  }

  int peerMessageBytes() {
    return peerMessageBytes;
  }

  long peerWindowBytes() {
    return peerWindowBytes;
  }

  Connections connections() {
    return connections;
  }

  /** The token that the acceptor has drawn. Any thread, once the connection is open. */
  long acceptorToken() {
    return listener == null ? peerToken : token;
  }

  /**
   * Waits until it is open.
   *
   * @throws IOException when it will not be, or not in time
   */
  void awaitOpen(long deadlineNanos) throws IOException {
    boolean decided =
        changed.await(connections.worker(), () -> state != State.CONNECTING, deadlineNanos);
    IOException cause = failure;
    if (cause != null) {
      ConnectException failed = new ConnectException(cause.getMessage());
      failed.initCause(cause);
      throw failed;
    }
    if (!decided) {
      throw UcxNode.timeout("no answer from UCX peer " + remote);
    }
  }

  // ---- the leader

  long token() {
    return token;
  }

  UcpEndpoint endpoint() {
    return endpoint;
  }

  private UcpEndpointParams params() {
    return new UcpEndpointParams()
        .setPeerErrorHandlingMode()
        .setErrorHandler(
            (failed, status, message) ->
                failLater(
                    new IOException(
                        "UCX connection to " + remote + ": " + message + " (" + status + ")")));
  }

  /** Makes the endpoint and says HELLO. */
  void connect() {
    try {
      endpoint = connections.ucp().newEndpoint(params().setSocketAddress(remote));
      connections.add(this);
      greet(Frame.HELLO, 0, remote);
    } catch (UcxException e) {
      fail(new ConnectException("UCX connection to " + remote + ": " + e.getMessage()));
    }
  }

  /** Makes the endpoint that was asked for. */
  void accept(UcpConnectionRequest request) {
    try {
      endpoint = connections.ucp().newEndpoint(params().setConnectionRequest(request));
      connections.add(this);
    } catch (UcxException e) {
      fail(new ConnectException("UCX connection from " + remote + ": " + e.getMessage()));
    }
  }

  private void greet(int type, long to, InetSocketAddress seen) {
    Greeting greeting =
        new Greeting(token, connections.windowBytes(), connections.messageBytes(), seen);
    control.add(type, 0, 0, to, 0, greeting);
    connections.frames(this);
  }

  /** The connector says who it is. */
  void onHello(Greeting greeting) throws IOException {
    if (listener == null || state != State.CONNECTING) {
      throw new IOException("HELLO where none was expected");
    }
    learn(greeting);
    local = listener.address();
    greet(Frame.WELCOME, peerToken, remote);
  }

  private void learn(Greeting greeting) {
    peerToken = greeting.token();
    peerMessageBytes = greeting.messageBytes();
    peerWindowBytes = greeting.windowBytes();
    change(State.OPEN);
  }

  private void change(State to) {
    state = to;
    changedNanos = System.nanoTime();
    changed.tell();
  }

  /**
   * A frame with our token has come.
   *
   * @return what UCX wants to hear of it
   * @throws IOException when it fits nothing here; nothing was kept of it
   */
  int onFrame(Frame frame, Greeting greeting, UcpAmData message) throws IOException {
    heardNanos = System.nanoTime();
    switch (frame.type()) {
      case Frame.WELCOME -> {
        if (listener != null || state != State.CONNECTING || greeting == null) {
          throw new IOException("WELCOME where none was expected");
        }
        local = greeting.seen();
        learn(greeting);
      }
      case Frame.OPEN -> onOpen(frame.stream());
      case Frame.GOODBYE -> {
        change(State.LEAVING);
        failLater(new IOException("UCX peer " + remote + " has ended"));
      }
      default -> {
        StreamEnd stream = streams.get(frame.stream());
        if (stream == null) {
          throw new IOException("no stream " + frame.stream());
        }
        try {
          return stream.onFrame(frame, message);
        } catch (IOException e) {
          control(Frame.RESET, 0, stream.id, 0);
          stream.fail(
              new IOException("UCX peer " + remote + " broke the rules: " + e.getMessage()), false);
          throw e;
        }
      }
    }
    return Connections.DONE;
  }

  private void onOpen(int id) throws IOException {
    if (listener == null || state != State.OPEN || id - lastStream <= 0) {
      throw new IOException("OPEN of stream " + id + " after " + lastStream);
    }
    lastStream = id;
    if (!connections.takeStream()) {
      refuse(id, Frame.TOO_MANY);
      return;
    }
    StreamEnd stream = new StreamEnd(id, this, StreamEnd.State.OPEN, connections);
    add(stream);
    int refusal = listener.offer(stream);
    if (refusal != 0) {
      refuse(id, refusal);
      stream.fail(new IOException(Frame.refusal(refusal)), true);
      return;
    }
    connections.counters().streamsAccepted.increment();
    control(Frame.ACCEPT, 0, id, 0);
  }

  private void refuse(int id, int reason) {
    connections.counters().streamsRefused.increment();
    control(Frame.REFUSE, reason, id, 0);
  }

  /**
   * Opens a stream; the peer is still to accept it.
   *
   * @return null when the connection is not open any more, or as many streams are open as may be
   */
  StreamEnd open() {
    if (state != State.OPEN || !connections.takeStream()) {
      return null;
    }
    lastStream++;
    StreamEnd stream = new StreamEnd(lastStream, this, StreamEnd.State.OPENING, connections);
    add(stream);
    control(Frame.OPEN, 0, lastStream, 0);
    return stream;
  }

  private void add(StreamEnd stream) {
    streams.put(stream.id, stream);
    connections.counted(1);
    changedNanos = System.nanoTime();
  }

  /** A stream is over. */
  void removed(StreamEnd stream) {
    if (streams.remove(stream.id, stream)) {
      stream.countNoMore();
      connections.returnStream();
      changedNanos = System.nanoTime();
    }
  }

  /** Tells the peer that this side gives the connection up, which is no failure. */
  void leave() {
    if (state == State.OPEN) {
      control(Frame.GOODBYE, 0, 0, 0);
      change(State.LEAVING);
    }
  }

  /** Sends a frame without data. */
  void control(int type, int detail, int stream, long sequence) {
    if (state != State.OPEN && state != State.LEAVING) {
      return;
    }
    if (control.queued() >= QUEUED_MOST + 4 * streams.size()) {
      failLater(new IOException("UCX peer " + remote + " takes no frames"));
      return;
    }
    control.add(type, detail, stream, peerToken, sequence, null);
    connections.frames(this);
  }

  /**
   * Sends what waits of frames without data.
   *
   * @return whether all went, and UCX is done with them
   */
  boolean sendFrames() {
    if (state == State.GONE || failingWith != null) {
      return true;
    }
    try {
      control.send(endpoint);
    } catch (RuntimeException e) {
      failLater(new IOException("UCX connection to " + remote + ": " + e.getMessage()));
    }
    return control.queued() == 0 && !control.underWay();
  }

  /**
   * Sends a message of a stream.
   *
   * @return UCX's transfer, null when the connection is lost
   */
  UcpRequest send(PooledBuffer buffer, int stream, long sequence, int length, boolean rendezvous) {
    if (state == State.GONE || failingWith != null) {
      return null;
    }
    Frame.put(buffer.header, 0, Frame.DATA, 0, stream, peerToken, sequence, length);
    try {
      return endpoint.sendAmNonBlocking(
          Connections.MESSAGE_ID,
          buffer.headerAddress,
          Frame.BYTES,
          buffer.address,
          length,
          rendezvous ? UcpConstants.UCP_AM_SEND_FLAG_RNDV : UcpConstants.UCP_AM_SEND_FLAG_EAGER,
          null,
          buffer.params);
    } catch (RuntimeException e) {
      failLater(new IOException("UCX connection to " + remote + ": " + e.getMessage()));
      return null;
    }
  }

  /**
   * Receives a message that was held.
   *
   * @return UCX's transfer, null when the connection is lost
   */
  UcpRequest receive(long descriptor, PooledBuffer buffer, int length) {
    if (state == State.GONE || failingWith != null) {
      connections.refuse(descriptor);
      return null;
    }
    try {
      return connections
          .ucp()
          .recvAmDataNonBlocking(descriptor, buffer.address, length, null, buffer.params);
    } catch (RuntimeException e) {
      failLater(new IOException("UCX connection to " + remote + ": " + e.getMessage()));
      return null;
    }
  }

  /** It is lost, which is acted upon soon: not in the middle of something else. */
  void failLater(IOException cause) {
    if (failingWith == null && state != State.GONE) {
      failingWith = cause;
      connections.failing(this);
    }
  }

  /** Ends what {@link #failLater} began. */
  void end() {
    fail(failingWith);
  }

  private void fail(IOException cause) {
    if (state == State.GONE) {
      return;
    }
    boolean left = state == State.LEAVING;
    failure = cause;
    if (!left && endpoint != null) {
      connections.counters().endpointsFailed.increment();
    }
    change(State.GONE);
    for (StreamEnd stream : new ArrayList<>(streams.values())) {
      stream.fail(cause, left);
    }
    connections.remove(this);
    if (endpoint != null) {
      try {
        connections.closing(endpoint.closeNonBlockingForce());
      } catch (RuntimeException e) {
        Connections.LOG.debug("endpoint to {}: {}", remote, e.toString());
      }
      endpoint = null;
    }
  }

  /** Looks at the clock. */
  void onTime(long nowNanos) {
    long sinceNanos = nowNanos - changedNanos;
    switch (state) {
      case CONNECTING -> {
        if (sinceNanos > connections.connectNanos()) {
          failLater(new SocketTimeoutException("no greeting from UCX peer " + remote));
        }
      }
      case OPEN -> {
        if (streams.isEmpty() && sinceNanos > mostIdleNanos()) {
          leave();
        }
        checkLingering(nowNanos);
      }
      case LEAVING -> {
        if (sinceNanos > connections.connectNanos()) {
          failLater(new IOException("left"));
        }
      }
      case GONE -> {}
    }
  }

  /**
   * The connector goes first, as only it can know that it is about to open a stream; an acceptor
   * gives up those who stay.
   */
  private long mostIdleNanos() {
    return connections.idleNanos() + (listener == null ? 0 : connections.connectNanos());
  }

  /**
   * A stream that was closed here, whose bytes a silent peer does not take, would hold its buffers
   * for ever.
   */
  private void checkLingering(long nowNanos) {
    if (nowNanos - heardNanos < connections.lingerNanos()) {
      return;
    }
    for (StreamEnd stream : streams.values()) {
      if (stream.state() == StreamEnd.State.CLOSING
          && nowNanos - stream.progressNanos() > connections.lingerNanos()) {
        failLater(new IOException("UCX peer " + remote + " is silent"));
        return;
      }
    }
  }

  @Override
  public String toString() {
    return (listener == null ? "ucx-to-" : "ucx-from-") + remote;
  }
}

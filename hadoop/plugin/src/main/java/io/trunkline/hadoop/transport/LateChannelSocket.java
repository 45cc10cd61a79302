package io.trunkline.hadoop.transport;

import io.trunkline.hadoop.conf.TrafficCategory;
import io.trunkline.hadoop.mark.SocketMark;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketException;
import java.net.SocketImpl;
import java.net.SocketOption;
import java.net.StandardProtocolFamily;
import java.nio.channels.SocketChannel;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.BooleanSupplier;
import org.apache.hadoop.net.NetUtils;
import org.apache.hadoop.net.SocketInputStream;
import org.apache.hadoop.net.SocketOutputStream;

/**
 * A socket that shows its channel only once it is connected. Stock code connects a socket that has
 * a channel through the channel, to the address it knows; one without through {@link #connect},
 * where the way to the DataNode can still be chosen. Afterwards it reads and writes through the
 * channel, with its own timeouts, as ever.
 *
 * <p>Options are those of a TCP socket, whether the connection goes by TCP or not: stock code sets
 * and reads them on any socket.
 */
public final class LateChannelSocket extends Socket {
  /** An option of the socket; set again when the connection must be replaced. */
  @FunctionalInterface
  private interface Option {
    void set(SocketChannel channel) throws IOException;
  }

  /** How far it is; {@link #close} ends it from each. */
  private enum State {
    /** {@link #real} has not been used. */
    NEW,
    /** {@link #real} has been used to connect by TCP, with or without success. */
    TRIED,
    /** {@link #shown} is there. */
    CONNECTED,
    CLOSED
  }

  /** Both ends of a connection. */
  private record Ends(InetSocketAddress remote, InetSocketAddress local) {}

  private final TransportChain transports;
  private final InetAddress localAddress;
  private final SocketMark mark;
  private final Map<String, Option> options = new LinkedHashMap<>();
  private final Object lock = new Object();

  /** Changed with the lock, which nobody holds while connecting. */
  private volatile State state = State.NEW;

  private volatile SocketAddress bound;

  /** Whether {@link #real} takes IPv4 alone; otherwise both, where the system has both. */
  private boolean ipv4Only;

  private volatile SocketChannel real;
  private volatile SocketChannel shown;

  /** Kept beyond the connection's end, for logs; null until it has been made. */
  private volatile Ends ends;

  /**
   * A socket, not yet connected.
   *
   * @param transports open data connections, null when this is none
   * @param localAddress address to bind to unless the caller binds, null for the system's choice
   * @param mark what every TCP connection that is made for this socket is marked by
   * @throws IOException when no socket can be made
   */
  public LateChannelSocket(TransportChain transports, InetAddress localAddress, SocketMark mark)
      throws IOException {
    super((SocketImpl) null);
    this.transports = transports;
    this.localAddress = localAddress;
    this.mark = mark;
    this.real = SocketChannel.open();
  }

  @Override
  public void connect(SocketAddress endpoint) throws IOException {
    connect(endpoint, 0);
  }

  @Override
  public void connect(SocketAddress endpoint, int timeoutMs) throws IOException {
    InetSocketAddress target = (InetSocketAddress) endpoint;
    boolean data = transports != null && !target.isUnresolved();
    SecuredConnection.forgetLast();
    if (!data) {
      show(connectTcp(target, timeoutMs), null);
      return;
    }
    Call call = new Call(target, timeoutMs);
    show(transports.open(call), call.secured);
  }

  /** What transports see of this socket while it is being connected. */
  private final class Call implements Dial {
    private final InetSocketAddress dataNode;
    private final int timeoutMs;

    /** Null unless the connection is secure by itself. */
    private SecuredConnection secured;

    Call(InetSocketAddress dataNode, int timeoutMs) {
      this.dataNode = dataNode;
      this.timeoutMs = timeoutMs;
    }

    @Override
    public InetSocketAddress dataNode() {
      return dataNode;
    }

    @Override
    public int timeoutMs() {
      return timeoutMs;
    }

    @Override
    public Socket socket() {
      return LateChannelSocket.this;
    }

    @Override
    public TrafficCategory category() {
      return mark.category();
    }

    @Override
    public boolean abandoned() {
      return state == State.CLOSED;
    }

    @Override
    public SocketChannel tcp(InetSocketAddress to, int limitMs) throws IOException {
      secured = null;
      return connectTcp(to, limitMs);
    }

    @Override
    public BooleanSupplier secured() throws IOException {
      secured = new SecuredConnection(((InetSocketAddress) real.getRemoteAddress()).getAddress());
      return secured;
    }
  }

  /** A channel that failed to connect is closed; the next attempt needs a new one. */
  private SocketChannel connectTcp(InetSocketAddress to, int limitMs) throws IOException {
    boolean ipv4 = mark.needsIpv4Only(to.getAddress());
    synchronized (lock) {
      refuseClosed();
      if (state != State.NEW || ipv4 != ipv4Only) {
        replace(ipv4);
      }
      if (state == State.NEW) {
        state = State.TRIED;
      }
      bindBeforeConnect();
    }
    mark.set(real);
    NetUtils.connect(real.socket(), to, limitMs);
    if (state == State.CONNECTED) {
      remember(real);
    }
    return real;
  }

  private void replace(boolean ipv4) throws IOException {
    real.close();
    real = ipv4 ? SocketChannel.open(StandardProtocolFamily.INET) : SocketChannel.open();
    ipv4Only = ipv4;
    synchronized (options) {
      for (Option option : options.values()) {
        option.set(real);
      }
    }
    if (bound != null) {
      real.bind(bound);
    }
  }

  private void bindBeforeConnect() throws IOException {
    if (localAddress != null && bound == null) {
      bound = new InetSocketAddress(localAddress, 0);
      real.bind(bound);
    }
  }

  private void show(SocketChannel channel, SecuredConnection secured) throws IOException {
    synchronized (lock) {
      if (state == State.CLOSED) {
        channel.close();
      }
      refuseClosed();
      shown = channel;
      state = State.CONNECTED;
    }
    remember(channel);
    if (secured != null) {
      int port = ends.remote().getPort();
      ends = new Ends(new InetSocketAddress(secured.address(), port), ends.local());
      secured.made();
    }
  }

  private void refuseClosed() throws SocketException {
    if (state == State.CLOSED) {
      throw new SocketException("socket closed while it was being connected");
    }
  }

  private void remember(SocketChannel channel) throws IOException {
    ends =
        new Ends(
            (InetSocketAddress) channel.getRemoteAddress(),
            (InetSocketAddress) channel.getLocalAddress());
  }

  /** An option of {@link Socket}, by the name of its setter. */
  @FunctionalInterface
  private interface SocketSetter {
    void set(Socket socket) throws SocketException;
  }

  private void set(String name, SocketSetter setter) throws SocketException {
    synchronized (options) {
      options.put(name, channel -> setter.set(channel.socket()));
    }
    setter.set(real.socket());
  }

  @Override
  public void bind(SocketAddress address) throws IOException {
    real.socket().bind(address);
    bound = address;
  }

  @Override
  public SocketChannel getChannel() {
    return shown;
  }

  @Override
  public InputStream getInputStream() throws IOException {
    return new SocketInputStream(connected(), getSoTimeout());
  }

  @Override
  public OutputStream getOutputStream() throws IOException {
    return new SocketOutputStream(connected(), 0);
  }

  private SocketChannel connected() throws SocketException {
    SocketChannel channel = shown;
    if (channel == null) {
      throw new SocketException("socket is not connected");
    }
    return channel;
  }

  @Override
  public void close() throws IOException {
    synchronized (lock) {
      state = State.CLOSED;
    }
    SocketChannel channel = shown;
    if (channel != null) {
      channel.close();
    }
    real.close();
  }

  @Override
  public boolean isClosed() {
    SocketChannel channel = shown;
    return state == State.CLOSED || !(channel == null ? real : channel).isOpen();
  }

  @Override
  public boolean isConnected() {
    SocketChannel channel = shown;
    return channel != null && channel.isConnected();
  }

  @Override
  public boolean isBound() {
    return shown != null || real.socket().isBound();
  }

  @Override
  public void shutdownInput() throws IOException {
    connected().shutdownInput();
  }

  @Override
  public void shutdownOutput() throws IOException {
    connected().shutdownOutput();
  }

  @Override
  public boolean isInputShutdown() {
    return real.socket().isInputShutdown();
  }

  @Override
  public boolean isOutputShutdown() {
    return real.socket().isOutputShutdown();
  }

  @Override
  public InetAddress getInetAddress() {
    Ends known = ends;
    return known == null ? null : known.remote().getAddress();
  }

  @Override
  public InetAddress getLocalAddress() {
    Ends known = ends;
    return known == null ? real.socket().getLocalAddress() : known.local().getAddress();
  }

  @Override
  public int getPort() {
    Ends known = ends;
    return known == null ? 0 : known.remote().getPort();
  }

  @Override
  public int getLocalPort() {
    Ends known = ends;
    return known == null ? real.socket().getLocalPort() : known.local().getPort();
  }

  @Override
  public SocketAddress getRemoteSocketAddress() {
    Ends known = ends;
    return known == null ? null : known.remote();
  }

  @Override
  public SocketAddress getLocalSocketAddress() {
    Ends known = ends;
    return known == null ? real.socket().getLocalSocketAddress() : known.local();
  }

  @Override
  public void setTcpNoDelay(boolean on) throws SocketException {
    set("TcpNoDelay", socket -> socket.setTcpNoDelay(on));
  }

  @Override
  public boolean getTcpNoDelay() throws SocketException {
    return real.socket().getTcpNoDelay();
  }

  @Override
  public void setSoLinger(boolean on, int seconds) throws SocketException {
    set("SoLinger", socket -> socket.setSoLinger(on, seconds));
  }

  @Override
  public int getSoLinger() throws SocketException {
    return real.socket().getSoLinger();
  }

  @Override
  public void sendUrgentData(int data) throws IOException {
    real.socket().sendUrgentData(data);
  }

  @Override
  public void setOOBInline(boolean on) throws SocketException {
    set("OOBInline", socket -> socket.setOOBInline(on));
  }

  @Override
  public boolean getOOBInline() throws SocketException {
    return real.socket().getOOBInline();
  }

  @Override
  public void setSoTimeout(int timeoutMs) throws SocketException {
    set("SoTimeout", socket -> socket.setSoTimeout(timeoutMs));
  }

  @Override
  public int getSoTimeout() throws SocketException {
    return real.socket().getSoTimeout();
  }

  @Override
  public void setSendBufferSize(int bytes) throws SocketException {
    set("SendBufferSize", socket -> socket.setSendBufferSize(bytes));
  }

  @Override
  public int getSendBufferSize() throws SocketException {
    return real.socket().getSendBufferSize();
  }

  @Override
  public void setReceiveBufferSize(int bytes) throws SocketException {
    set("ReceiveBufferSize", socket -> socket.setReceiveBufferSize(bytes));
  }

  @Override
  public int getReceiveBufferSize() throws SocketException {
    return real.socket().getReceiveBufferSize();
  }

  @Override
  public void setKeepAlive(boolean on) throws SocketException {
    set("KeepAlive", socket -> socket.setKeepAlive(on));
  }

  @Override
  public boolean getKeepAlive() throws SocketException {
    return real.socket().getKeepAlive();
  }

  @Override
  public void setTrafficClass(int trafficClass) throws SocketException {
    set("TrafficClass", socket -> socket.setTrafficClass(trafficClass));
  }

  @Override
  public int getTrafficClass() throws SocketException {
    return real.socket().getTrafficClass();
  }

  @Override
  public void setReuseAddress(boolean on) throws SocketException {
    set("ReuseAddress", socket -> socket.setReuseAddress(on));
  }

  @Override
  public boolean getReuseAddress() throws SocketException {
    return real.socket().getReuseAddress();
  }

  @Override
  public void setPerformancePreferences(int connectionTime, int latency, int bandwidth) {
    real.socket().setPerformancePreferences(connectionTime, latency, bandwidth);
  }

  @Override
  public <T> Socket setOption(SocketOption<T> name, T value) throws IOException {
    synchronized (options) {
      options.put(name.name(), channel -> channel.setOption(name, value));
    }
    real.setOption(name, value);
    return this;
  }

  @Override
  public <T> T getOption(SocketOption<T> name) throws IOException {
    return real.getOption(name);
  }

  @Override
  public Set<SocketOption<?>> supportedOptions() {
    return real.supportedOptions();
  }

  @Override
  public String toString() {
    SocketChannel channel = shown;
    return "LateChannelSocket[" + (channel == null ? real : channel) + "]";
  }
}

package io.trunkline.hadoop.transport;

import java.io.IOException;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.util.function.BooleanSupplier;

/**
 * A connection that a transport has made secure by itself before stock code sees it, which need not
 * do so again. Stock code asks by a trusted-channel resolver, on the thread that has just
 * connected, with the address that the connection's socket gives out. Both are needed: the thread's
 * last connection must be such a one, and the address the very object that its socket gives out.
 * Every connect forgets the one before, so that what falls back to stock TCP is never taken for it.
 */
public final class SecuredConnection implements BooleanSupplier {
  private static final ThreadLocal<SecuredConnection> LAST = new ThreadLocal<>();

  /** Equal to the peer's address, and the same object as no other. */
  private final InetAddress address;

  private volatile boolean trusted;

  SecuredConnection(InetAddress peer) throws IOException {
    address = copy(peer);
  }

  private static InetAddress copy(InetAddress peer) throws IOException {
    return peer instanceof Inet6Address six
        ? Inet6Address.getByAddress(null, six.getAddress(), six.getScopeId())
        : InetAddress.getByAddress(peer.getAddress());
  }

  /** A connection is about to be made by this thread. */
  static void forgetLast() {
    LAST.remove();
  }

  /** This connection has been made by this thread. */
  void made() {
    LAST.set(this);
  }

  InetAddress address() {
    return address;
  }

  /**
   * Whether the connection that this thread has made last is secure.
   *
   * @return true when it is
   */
  public static boolean isLast() {
    return LAST.get() != null;
  }

  /**
   * Whether an address is that of the connection which this thread has made last, and which is
   * secure. Stock code takes the answer for that connection, so there is one.
   *
   * @param peer what the connection's socket gave out
   * @return true when it is
   */
  public static boolean trust(InetAddress peer) {
    SecuredConnection last = LAST.get();
    if (last == null || last.address != peer) {
      return false;
    }
    last.trusted = true;
    LAST.remove();
    return true;
  }

  /** Whether stock code was told that this connection is secure, so that it writes in plain. */
  @Override
  public boolean getAsBoolean() {
    return trusted;
  }
}

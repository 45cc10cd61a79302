package io.trunkline.hadoop.ndn.secure;

import io.trunkline.hadoop.ndn.NativeSecurity;
import io.trunkline.hadoop.ndn.wire.SecureHello;
import io.trunkline.hadoop.ndn.wire.Welcome;
import java.io.IOException;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;

/**
 * One end of a secure control connection: the handshake, then records each way. The handle in the
 * native library is given back by {@link #close}, or once nobody holds this object. One thread may
 * seal while another one opens.
 */
public final class SecureSession implements AutoCloseable {
  /** Bytes of a record's length, before the record. */
  static final int LENGTH_BYTES = 2;

  private static final Cleaner CLEANER = Cleaner.create();

  private final long handle;
  private final Cleaner.Cleanable handleClose;

  private SecureSession(long handle) {
    this.handle = handle;
    this.handleClose = CLEANER.register(this, () -> NativeSecurity.sessionClose(handle));
  }

  /**
   * The end that has connected.
   *
   * @param welcome what the other end has said first
   * @param password the token's
   * @param identifier the token's
   * @param address the DataNode that is meant, as in {@link SecureHello#address}
   * @return the session, whose handshake this end begins
   * @throws IOException when there is no password
   */
  public static SecureSession client(
      Welcome welcome, byte[] password, byte[] identifier, String address) throws IOException {
    return open(false, welcome, password, identifier, address);
  }

  /**
   * The end that has accepted.
   *
   * @param welcome what this end has said first
   * @param password the token's
   * @param identifier the token's
   * @param address the DataNode that is meant, as in {@link SecureHello#address}
   * @return the session, whose handshake the other end begins
   * @throws IOException when there is no password
   */
  public static SecureSession server(
      Welcome welcome, byte[] password, byte[] identifier, String address) throws IOException {
    return open(true, welcome, password, identifier, address);
  }

  private static SecureSession open(
      boolean server, Welcome welcome, byte[] password, byte[] identifier, String address)
      throws IOException {
    byte[] prologue = SecureHello.prologue(welcome, identifier, address);
    return new SecureSession(NativeSecurity.sessionOpen(server, password, prologue));
  }

  /**
   * This end's message of the handshake.
   *
   * @return the message
   * @throws IOException when it is not this end's turn
   */
  public byte[] say() throws IOException {
    try {
      return NativeSecurity.sessionSay(handle);
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Takes the other end's message of the handshake.
   *
   * @param message the message
   * @throws IOException when the other end has another password
   */
  public void hear(byte[] message) throws IOException {
    try {
      NativeSecurity.sessionHear(handle, message);
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  /**
   * Seals the next record.
   *
   * @param from array with what it is to carry
   * @param off where that begins
   * @param length how many bytes, at most {@link SecureHello#MAX_PLAIN_BYTES}
   * @param to takes the record, its length before it; has an array, and room for it
   * @throws IOException when the session has been closed
   */
  public void seal(byte[] from, int off, int length, ByteBuffer to) throws IOException {
    int sealed = length + SecureHello.SEAL_BYTES;
    to.putShort((short) sealed);
    try {
      NativeSecurity.sessionSeal(
          handle, from, off, length, to.array(), to.arrayOffset() + to.position());
    } finally {
      Reference.reachabilityFence(this);
    }
    to.position(to.position() + sealed);
  }

  /** Opens the next record; returns how many bytes it carries. */
  int unseal(byte[] from, int off, int length, byte[] to) throws IOException {
    try {
      return NativeSecurity.sessionUnseal(handle, from, off, length, to, 0);
    } finally {
      Reference.reachabilityFence(this);
    }
  }

  @Override
  public void close() {
    handleClose.clean();
  }
}

package io.trunkline.hadoop.ndn;

import java.io.IOException;

/**
 * The face of the native library's cryptography: secure sessions by the Noise protocol, and the
 * keys of writes. Handles are as {@link Native}'s; one thread may seal while another one opens.
 */
public final class NativeSecurity {
  private NativeSecurity() {}

  /**
   * Begins a session.
   *
   * @param server whether this end has accepted the connection
   * @param password what both ends have; never empty
   * @param prologue what both ends have seen before; where they differ the handshake fails
   * @return the session's handle; close it with {@link #sessionClose}
   * @throws IOException when there is no password
   */
  public static native long sessionOpen(boolean server, byte[] password, byte[] prologue)
      throws IOException;

  /**
   * This end's message of the handshake.
   *
   * @param session the session's handle
   * @return the message
   * @throws IOException when it is not this end's turn
   */
  public static native byte[] sessionSay(long session) throws IOException;

  /**
   * Takes the other end's message of the handshake.
   *
   * @param session the session's handle
   * @param message the message
   * @throws IOException when the other end has another password, or has seen something else
   */
  public static native void sessionHear(long session, byte[] message) throws IOException;

  /**
   * Seals the next record.
   *
   * @param session the session's handle
   * @param from array with what it is to carry
   * @param off where that begins
   * @param length how many bytes
   * @param to where the record goes
   * @param at where in it
   * @return the record's length
   * @throws IOException when the session is not open, or there is no room
   */
  public static native int sessionSeal(
      long session, byte[] from, int off, int length, byte[] to, int at) throws IOException;

  /**
   * Opens the next record.
   *
   * @param session the session's handle
   * @param from array with the record
   * @param off where it begins
   * @param length its length
   * @param to where what it carries goes
   * @param at where in it
   * @return how many bytes it carries
   * @throws IOException when it is not the next one as the other end sealed it; then none after it
   *     is opened
   */
  public static native int sessionUnseal(
      long session, byte[] from, int off, int length, byte[] to, int at) throws IOException;

  /**
   * Ends a session.
   *
   * @param session the session's handle
   */
  public static native void sessionClose(long session);

  /**
   * Draws the key of a write.
   *
   * @return 16 bytes that nobody has had before
   * @throws IOException when the system has no random numbers
   */
  public static native byte[] keyDraw() throws IOException;

  /**
   * What names tell a key by.
   *
   * @param key the key
   * @return 8 bytes, which say nothing of it
   * @throws IOException when it is no key
   */
  public static native byte[] keyId(byte[] key) throws IOException;
}

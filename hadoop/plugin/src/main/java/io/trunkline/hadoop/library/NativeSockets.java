package io.trunkline.hadoop.library;

import java.io.IOException;
import java.nio.channels.SocketChannel;

/**
 * What the native library does with sockets and Java cannot. Nothing here may be called before
 * {@link NativeLibrary#load}. Handles are opaque non-zero longs; one that was closed, or never
 * given out, is refused.
 */
public final class NativeSockets {
  private NativeSockets() {}

  /**
   * Gets at the low-water mark of a connection ({@code SO_RCVLOWAT} of socket(7)): its reader, and
   * whoever selects it, is woken once so many bytes have come. The connection stays until this is
   * closed, too. If the channel is closed meanwhile, the handle may be of another one's connection:
   * ask {@link SocketChannel#isOpen} before it is used.
   *
   * @param channel a connection of the JVM's own
   * @return the handle; close it with {@link #lowWaterClose}
   * @throws IOException when the JVM's channels do not tell their descriptor, or it is closed
   */
  public static native long lowWaterOpen(SocketChannel channel) throws IOException;

  /**
   * Sets the mark.
   *
   * @param lowWater the handle
   * @param bytes from 1, which is where a connection begins; the kernel takes no more than it can
   *     hold
   * @throws IOException when the handle is closed, or is of no socket
   */
  public static native void lowWaterSet(long lowWater, int bytes) throws IOException;

  /**
   * Lets go of the connection, whose mark stays.
   *
   * @param lowWater the handle
   */
  public static native void lowWaterClose(long lowWater);

  /**
   * The number by which the kernel knows a connection.
   *
   * @param channel a connection of the JVM's own
   * @return its descriptor, which may be another file's once the channel is closed
   * @throws IOException when the JVM's channels do not tell it
   */
  public static native int descriptor(SocketChannel channel) throws IOException;

  /**
   * Waits until a read would not have to: bytes of the connection, its end or an error are there,
   * at least as many bytes as its low-water mark says. It does not end when the thread is
   * interrupted or the channel is closed.
   *
   * @param descriptor of the connection; nothing happens to what it stands for
   * @param timeoutMs for how long, in milliseconds, from 0
   * @return whether it is so, or there is no such descriptor
   * @throws IOException when the kernel does not say
   */
  public static native boolean awaitReadable(int descriptor, int timeoutMs) throws IOException;
}

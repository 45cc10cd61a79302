package io.trunkline.hadoop.ucx;

import io.trunkline.hadoop.library.BundledLibrary;
import java.io.IOException;
import java.util.concurrent.TimeUnit;
import org.openucx.jucx.UcxException;
import org.openucx.jucx.ucp.UcpWorker;

/** What UCX needs of native code beside jucx. */
final class UcxNative {
  private UcxNative() {}

  /**
   * Loads it, before anything of UCX is, and keeps UCX from taking the JVM's signals: from its
   * loading until jucx gives them back, a millisecond or more, any SIGSEGV would end the process,
   * and compiled Java code uses that to find null and to stop for the collector.
   *
   * @throws IOException when the library is not in the jar or can't be unpacked
   * @throws UnsatisfiedLinkError when the loader does not take it
   */
  static void load() throws IOException {
    BundledLibrary.load(UcxNative.class, "/native/linux-x86_64/libtrunkline_ucx.so");
    if (!keepOffSignals()) {
      throw new IOException("setenv fails: out of memory");
    }
  }

  /**
   * Has a worker tell of what comes from now on. jucx's own takes events that are here for an
   * error, which is an everyday answer, and has no sleep apart from it, nor one that ends by
   * itself.
   *
   * @param worker by its native id, which no other thread may call meanwhile
   * @return false when there are events to look after first
   * @throws UcxException when UCX can't
   */
  static boolean arm(long worker) {
    int status = armWorker(worker);
    if (status < 0) {
      throw new UcxException("ucp_worker_arm: status " + status);
    }
    return status > 0;
  }

  /**
   * Sleeps until something comes to a worker that has been armed, or {@link UcpWorker#signal} is
   * called. Other threads may call the worker meanwhile.
   *
   * @param events descriptor of {@link UcpWorker#getEventFD}
   * @param mostNanos how long at most, rounded up to milliseconds
   */
  static void sleep(int events, long mostNanos) {
    long ms = TimeUnit.NANOSECONDS.toMillis(mostNanos + TimeUnit.MILLISECONDS.toNanos(1) - 1);
    awaitReadable(events, (int) Math.min(ms, Integer.MAX_VALUE));
  }

  /** Whether the UCX that is loaded has what {@link #arm} needs; called before that. */
  static native boolean findArm();

  private static native boolean keepOffSignals();

  private static native int armWorker(long worker);

  private static native void awaitReadable(int descriptor, int mostMs);
}

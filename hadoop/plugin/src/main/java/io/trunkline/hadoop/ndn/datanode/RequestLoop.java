package io.trunkline.hadoop.ndn.datanode;

import java.io.IOException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The thread that answers what readers ask for by name; no failure of one request ends it. */
final class RequestLoop implements AutoCloseable {
  /** Where requests come from. */
  @FunctionalInterface
  interface Source {
    /**
     * Waits a little for a request.
     *
     * @return the request, or null when none has come
     * @throws IOException when none is to be had now
     */
    String next() throws IOException;
  }

  private static final Logger LOG = LoggerFactory.getLogger(RequestLoop.class);
  private static final long JOIN_MS = 1000;

  private final Source source;
  private final Consumer<String> answer;
  private final long pauseMs;
  private final CountDownLatch closed = new CountDownLatch(1);
  private final Thread thread;

  /**
   * Begins to answer.
   *
   * @param source gives requests
   * @param answer answers one
   * @param pauseMs how long to wait after a failure, in milliseconds
   */
  RequestLoop(Source source, Consumer<String> answer, long pauseMs) {
    this.source = source;
    this.answer = answer;
    this.pauseMs = pauseMs;
    thread = new Thread(this::run, "trunkline-replica-resolver");
    thread.setDaemon(true);
    thread.start();
  }

  private void run() {
    boolean failing = false;
    while (closed.getCount() > 0) {
      try {
        String request = source.next();
        if (request != null) {
          answer.accept(request);
        }
        failing = false;
      } catch (IOException | RuntimeException | OutOfMemoryError e) {
        // Threads that strangers keep come under the last, too, and are there again later.
        if (closed.getCount() > 0 && !failing) {
          LOG.warn("named data: reads by name are not served; retrying: {}", e.toString());
        }
        failing = true;
        pause();
      }
    }
  }

  private void pause() {
    try {
      closed.await(pauseMs, TimeUnit.MILLISECONDS);
    } catch (InterruptedException e) {
      LOG.debug("interrupted, the DataNode shuts down");
    }
  }

  /** Ends when the source has given what it waits for now. */
  void stop() {
    closed.countDown();
  }

  @Override
  public void close() {
    stop();
    try {
      thread.join(JOIN_MS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}

package io.trunkline.hadoop.ndn.datanode;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.IOException;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class RequestLoopTest {
  /** A DataNode's replicas would be served by name no more until it is restarted. */
  @Test
  void failuresDoNotEndIt() throws Exception {
    BlockingQueue<Object> source = new LinkedBlockingQueue<>();
    BlockingQueue<String> answered = new LinkedBlockingQueue<>();
    source.add(new IOException("the forwarder is down"));
    source.add("first");
    source.add(new IllegalStateException("within"));
    source.add("bad");
    source.add("much");
    source.add("second");
    try (RequestLoop loop =
        new RequestLoop(
            () -> {
              Object next;
              try {
                next = source.poll(10, TimeUnit.MILLISECONDS);
              } catch (InterruptedException e) {
                throw new IOException(e);
              }
              if (next instanceof IOException e) {
                throw e;
              }
              if (next instanceof RuntimeException e) {
                throw e;
              }
              return (String) next;
            },
            request -> {
              if (request.equals("bad")) {
                throw new IllegalArgumentException("no answer to this one");
              }
              if (request.equals("much")) {
                throw new OutOfMemoryError("unable to create native thread");
              }
              answered.add(request);
            },
            1)) {
      assertEquals("first", answered.poll(30, TimeUnit.SECONDS));
      assertEquals("second", answered.poll(30, TimeUnit.SECONDS));
    }
  }
}

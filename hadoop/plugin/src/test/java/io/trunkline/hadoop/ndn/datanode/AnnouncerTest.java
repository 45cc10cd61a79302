package io.trunkline.hadoop.ndn.datanode;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.ndn.Names;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.hdfs.protocol.DatanodeID;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Under which names a DataNode's record is found. */
@Timeout(60)
class AnnouncerTest {
  private static final Names NAMES = new Names("/hadoop");

  private final AtomicReference<DatanodeID> id = new AtomicReference<>();
  private final AtomicInteger refusals = new AtomicInteger();
  private final Map<Long, String> open = new HashMap<>();
  private final BlockingQueue<String> events = new LinkedBlockingQueue<>();
  private final Announcer.Publisher publisher =
      new Announcer.Publisher() {
        private long last;

        @Override
        public long publish(String name) throws IOException {
          if (refusals.getAndDecrement() > 0) {
            throw new IOException("the forwarder is down");
          }
          open.put(++last, name);
          events.add("+" + name);
          return last;
        }

        @Override
        public void withdraw(long published) {
          events.add("-" + open.remove(published));
        }
      };

  private static DatanodeID known(String ip, String host) {
    return new DatanodeID(ip, host, "uuid", 9866, 9864, 9865, 9867);
  }

  private OwnAddresses own(String... further) {
    return new OwnAddresses(id::get, () -> Set.of(further));
  }

  private Set<String> next(int count) throws InterruptedException {
    Set<String> next = new HashSet<>();
    while (next.size() < count) {
      String event = events.poll(30, TimeUnit.SECONDS);
      assertTrue(event != null, "only " + next);
      next.add(event);
    }
    return next;
  }

  @Test
  void everyNameByWhichAClientMayKnowIt() throws Exception {
    try (Announcer announcer = new Announcer(NAMES, own("10.0.0.7", "192.0.2.7"), publisher)) {
      id.set(known("10.0.0.7", "Worker7.example.org"));
      assertEquals(
          Set.of(
              "+/hadoop/datanodes/10.0.0.7/9866",
              "+/hadoop/datanodes/worker7.example.org/9866",
              "+/hadoop/datanodes/192.0.2.7/9866"),
          next(3));
      id.set(known("10.0.0.8", "worker7.example.org"));
      assertEquals(Set.of("+/hadoop/datanodes/10.0.0.8/9866"), next(1));
    }
    assertEquals(4, next(4).size());
    assertEquals(Map.of(), open, "all withdrawn in the end");
  }

  @Test
  void whatFailsIsTriedAgain() throws Exception {
    refusals.set(2);
    id.set(known("10.0.0.7", "localhost"));
    try (Announcer announcer = new Announcer(NAMES, own(), publisher)) {
      assertEquals(Set.of("+/hadoop/datanodes/10.0.0.7/9866"), next(1), "localhost is every host");
    }
  }

  /** The names that a client asks for are among those. */
  @Test
  void aClientAsksByAddressAndByTheNameItWasGiven() throws Exception {
    byte[] ip = {10, 0, 0, 7};
    assertEquals(
        List.of("/hadoop/datanodes/10.0.0.7/9866"),
        NAMES.dataNode(new InetSocketAddress(InetAddress.getByAddress(ip), 9866)));
    assertEquals(
        List.of("/hadoop/datanodes/10.0.0.7/9866", "/hadoop/datanodes/worker7.example.org/9866"),
        NAMES.dataNode(
            new InetSocketAddress(InetAddress.getByAddress("Worker7.example.org", ip), 9866)));
  }
}

package io.trunkline.hadoop.ndn.datanode;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.ndn.wire.DataNodeAddress;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.hadoop.hdfs.protocol.DatanodeID;
import org.junit.jupiter.api.Test;

/** Which DataNode a client means, and which one a DataNode is. */
class OwnAddressesTest {
  private final AtomicReference<DatanodeID> id =
      new AtomicReference<>(new DatanodeID("10.0.0.1", "DN1.example", "u", 9866, 1, 2, 3));
  private final OwnAddresses own = new OwnAddresses(id::get, () -> Set.of("192.0.2.1", "fe80::1"));

  @Test
  void itIsMeantByAnyOfItsAddresses() {
    for (String said :
        new String[] {
          "10.0.0.1:9866",
          "192.0.2.1:9866",
          "198.51.100.7:9866 dn1.example:9866",
          "10.0.0.1:9866 elsewhere:9866",
          "10.0.0.1:9866 10.0.0.1:9866",
          "fe80::1:9866"
        }) {
      assertTrue(own.include(said), said);
    }
  }

  @Test
  void othersAreNot() {
    for (String said :
        new String[] {
          "10.0.0.2:9866",
          "10.0.0.1:9867",
          "10.0.0.1",
          "dn2.example:9866",
          "",
          " ",
          ":9866",
          "a b 10.0.0.1:9866"
        }) {
      assertFalse(own.include(said), said);
    }
  }

  /** "localhost" is another host on each host. */
  @Test
  void aNameThatEachHostHasSaysNothing() {
    id.set(new DatanodeID("10.0.0.1", "localhost", "u", 9866, 1, 2, 3));
    assertFalse(own.include("127.0.0.1:9866 localhost:9866"));
  }

  @Test
  void nobodyIsMeantBeforeTheNameNodeKnowsIt() {
    id.set(null);
    assertFalse(own.include("10.0.0.1:9866"));
    assertEquals(0, own.port());
  }

  @Test
  void aClientNamesWhatTheNameNodeGaveIt() throws Exception {
    InetAddress named = InetAddress.getByAddress("DN1.example", new byte[] {10, 0, 0, 1});
    assertEquals(
        "10.0.0.1:9866 dn1.example:9866", DataNodeAddress.of(new InetSocketAddress(named, 9866)));
    assertEquals("10.0.0.1:9866", DataNodeAddress.of(new InetSocketAddress("10.0.0.1", 9866)));
    InetAddress endless = InetAddress.getByAddress("x".repeat(600), new byte[] {10, 0, 0, 1});
    assertEquals("10.0.0.1:9866", DataNodeAddress.of(new InetSocketAddress(endless, 9866)));
    assertEquals("fe80::1:9866", DataNodeAddress.of("FE80::1%eth0", 9866));
  }
}

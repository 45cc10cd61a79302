package io.trunkline.hadoop.cluster;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;

import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.ndn.Native;
import io.trunkline.hadoop.ndn.NdnNode;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Interests for block pools that no DataNode has. */
@Timeout(120)
class HostileNamesTest {
  @Test
  void leaveNothingBehindInTheDataNode() throws Exception {
    Configuration conf = TestCluster.conf();
    conf.setInt("dfs.replication", 1);
    try (TestCluster cluster = new TestCluster(conf, 1);
        NdnNode node = NdnNode.acquire(Settings.from(conf), null)) {
      DataNode dataNode = cluster.mini().getDataNodes().get(0);
      byte[] data = TestCluster.data(1, 100_000);
      cluster.write("/file", data);
      for (String pool : new String[] {"..%2F..", "BP-nobody", "a%20b", "%00"}) {
        String name = node.names().blocks() + '/' + pool + "/1073741825/32=metadata";
        assertNull(Native.fetch(node.handle(), name, true, true, false, 2000), name);
      }
      for (Object name : locks(dataNode)) {
        assertFalse(
            name.toString().contains("nobody") || name.toString().contains(".."), "" + name);
      }
      cluster.check("/file", data, 1);
    }
  }

  /** Names for which the DataNode keeps a lock; Hadoop 3.3 has a single lock for all blocks. */
  private static Set<?> locks(DataNode dataNode) throws ReflectiveOperationException {
    Method getter;
    try {
      getter = DataNode.class.getMethod("getDataSetLockManager");
    } catch (NoSuchMethodException e) {
      return Set.of();
    }
    Object lockMap = field(getter.invoke(dataNode), "lockMap");
    return ((Map<?, ?>) field(lockMap, "readlockMap")).keySet();
  }

  private static Object field(Object owner, String name) throws ReflectiveOperationException {
    Field field = owner.getClass().getDeclaredField(name);
    field.setAccessible(true);
    return field.get(owner);
  }
}

package io.trunkline.hadoop.ucx.hdfs;

import io.trunkline.hadoop.conf.UcxSettings;
import io.trunkline.hadoop.ucx.RegisteredMemory;
import java.io.IOException;

/** The registered memory that clients and DataNodes of this JVM share. */
public final class NodesMemory {
  private NodesMemory() {}

  /** Whether some bytes lie there, as what has been sent by UCX of late does. */
  public static boolean holds(UcxSettings settings, byte[] wanted) throws IOException {
    try (UcxNodes.Use use = UcxNodes.acquire(settings)) {
      return RegisteredMemory.holds(use.node(), wanted);
    }
  }
}

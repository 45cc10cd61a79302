package io.trunkline.hadoop.conf;

import java.util.List;

/** The transports' names: in {@code trunkline.transport}, in the counters and in the log. */
public final class TransportNames {
  /** Named data. */
  public static final String NDN = "ndn";

  /** UCX. */
  public static final String UCX = "ucx";

  /** Stock TCP whose segments switches copy to all replicas of a block. */
  public static final String MIRROR = "mirror";

  /** Stock TCP, the fallback of all others. */
  public static final String TCP = "tcp";

  static final List<String> ALL = List.of(UCX, NDN, MIRROR, TCP);

  private TransportNames() {}
}

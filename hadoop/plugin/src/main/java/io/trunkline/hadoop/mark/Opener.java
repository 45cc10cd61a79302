package io.trunkline.hadoop.mark;

import io.trunkline.hadoop.conf.TrafficCategory;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Tells what a connection will carry by the code that opens it. That is known before the first
 * packet leaves, also where a handshake of SASL comes first and hides the operation, and it holds
 * for as long as the connection lasts: HDFS keeps connections for further operations of one kind
 * only, reads.
 */
public final class Opener {
  private static final String HDFS = "org.apache.hadoop.hdfs.";
  private static final String DATANODE = HDFS + "server.datanode.";
  private static final String WRITER = HDFS + "DataStreamer";

  /** What stands between a caller of each protocol and Hadoop's RPC client. */
  private static final Set<String> TO_NAMENODE =
      Set.of(
          "ClientNamenodeProtocolTranslatorPB",
          "NamenodeProtocolTranslatorPB",
          "DatanodeProtocolClientSideTranslatorPB",
          "DatanodeLifelineProtocolClientSideTranslatorPB");

  private static final Set<String> TO_RESOURCEMANAGER =
      Set.of(
          "ApplicationClientProtocolPBClientImpl",
          "ApplicationMasterProtocolPBClientImpl",
          "ResourceTrackerPBClientImpl",
          "ResourceManagerAdministrationProtocolPBClientImpl");

  private Opener() {}

  /**
   * The category of a data connection.
   *
   * @param opener name of the class that opens it
   * @return the category
   */
  public static TrafficCategory ofData(String opener) {
    return ofData(opener, TaskProcess.isThis());
  }

  static TrafficCategory ofData(String opener, boolean task) {
    if (opener.startsWith(DATANODE)) {
      return TrafficCategory.REPLICATION;
    }
    boolean writes = opener.equals(WRITER) || opener.startsWith(WRITER + "$");
    return writes ? written(task) : read(task);
  }

  /**
   * What this process reads from HDFS is.
   *
   * @return the category of its reads
   */
  public static TrafficCategory read() {
    return read(TaskProcess.isThis());
  }

  private static TrafficCategory read(boolean task) {
    return task ? TrafficCategory.SPLIT : TrafficCategory.CLIENT_READ;
  }

  private static TrafficCategory written(boolean task) {
    return task ? TrafficCategory.RESULT : TrafficCategory.CLIENT_WRITE;
  }

  /**
   * The category of an RPC connection.
   *
   * @param callers names of the classes whose methods are under way, innermost first
   * @return the category, null for RPC of other protocols
   */
  public static TrafficCategory ofRpc(Stream<String> callers) {
    return callers
        .map(name -> name.substring(name.lastIndexOf('.') + 1))
        .map(
            name -> {
              if (TO_NAMENODE.contains(name)) {
                return TrafficCategory.NAMENODE;
              }
              return TO_RESOURCEMANAGER.contains(name) ? TrafficCategory.RESOURCEMANAGER : null;
            })
        .filter(category -> category != null)
        .findFirst()
        .orElse(null);
  }
}

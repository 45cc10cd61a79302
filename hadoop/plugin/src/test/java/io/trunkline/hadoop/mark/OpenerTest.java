package io.trunkline.hadoop.mark;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.conf.TrafficCategory;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class OpenerTest {
  @ParameterizedTest
  @CsvSource({
    "org.apache.hadoop.hdfs.DataStreamer, CLIENT_WRITE, RESULT",
    "org.apache.hadoop.hdfs.DataStreamer$StreamerStreams, CLIENT_WRITE, RESULT",
    "org.apache.hadoop.hdfs.DFSClient, CLIENT_READ, SPLIT",
    "org.apache.hadoop.hdfs.DFSUtilClient, CLIENT_READ, SPLIT",
    "org.apache.hadoop.hdfs.server.datanode.DataNode, REPLICATION, REPLICATION",
    "org.apache.hadoop.hdfs.server.datanode.DataNode$DataTransfer, REPLICATION, REPLICATION",
    "org.apache.hadoop.hdfs.server.datanode.DataXceiver, REPLICATION, REPLICATION",
    "org.apache.hadoop.hdfs.server.datanode.erasurecode.StripedBlockReader, REPLICATION,"
        + " REPLICATION",
  })
  void dataByWhoOpensTheConnection(String opener, TrafficCategory client, TrafficCategory task)
      throws ClassNotFoundException {
    Class.forName(opener, false, getClass().getClassLoader());
    assertEquals(client, Opener.ofData(opener, false));
    assertEquals(task, Opener.ofData(opener, true));
  }

  @ParameterizedTest
  @CsvSource({
    "org.apache.hadoop.hdfs.protocolPB.ClientNamenodeProtocolTranslatorPB, NAMENODE",
    "org.apache.hadoop.hdfs.protocolPB.NamenodeProtocolTranslatorPB, NAMENODE",
    "org.apache.hadoop.hdfs.protocolPB.DatanodeProtocolClientSideTranslatorPB, NAMENODE",
    "org.apache.hadoop.hdfs.protocolPB.DatanodeLifelineProtocolClientSideTranslatorPB, NAMENODE",
    "org.apache.hadoop.hdfs.protocolPB.InterDatanodeProtocolTranslatorPB,",
    "org.apache.hadoop.hdfs.protocolPB.ClientDatanodeProtocolTranslatorPB,",
  })
  void rpcByItsProtocol(String translator, TrafficCategory category) throws Exception {
    Class.forName(translator, false, getClass().getClassLoader());
    Stream<String> callers = Stream.of("org.apache.hadoop.ipc.Client", translator, "a.b.Caller");
    assertEquals(category, Opener.ofRpc(callers));
  }

  /** YARN is not on the class path of these tests. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "org.apache.hadoop.yarn.api.impl.pb.client.ApplicationMasterProtocolPBClientImpl",
        "org.apache.hadoop.yarn.server.api.impl.pb.client.ResourceTrackerPBClientImpl"
      })
  void rpcOfYarn(String client) {
    assertEquals(TrafficCategory.RESOURCEMANAGER, Opener.ofRpc(Stream.of("x.Y", client)));
    assertNull(Opener.ofRpc(Stream.of("x.Y", client.replace("PBClient", "PBServer"))));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "org.apache.hadoop.mapred.YarnChild 10.0.0.1 40000 attempt_1_0001_m_000000_0 2",
        "org.apache.spark.executor.YarnCoarseGrainedExecutorBackend --driver-url spark://x",
      })
  void tasksByTheirMainClass(String command) {
    assertTrue(TaskProcess.runsTasks(command));
    assertFalse(TaskProcess.runsTasks("org.apache.hadoop.fs.FsShell -put " + command));
    assertFalse(TaskProcess.isThis());
  }
}

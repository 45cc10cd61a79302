package io.trunkline.hadoop.wire;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.StockBytes;
import java.io.IOException;
import java.util.Arrays;
import java.util.Random;
import org.apache.hadoop.hdfs.protocol.datatransfer.BlockConstructionStage;
import org.apache.hadoop.hdfs.security.token.block.BlockTokenIdentifier;
import org.apache.hadoop.io.Text;
import org.apache.hadoop.security.token.Token;
import org.junit.jupiter.api.Test;

/** A write's header is read as stock code's own classes read it. */
class WriteOpFieldsTest {
  /** What two readings of a header say, to be compared. */
  static String said(WriteOp op) {
    BlockToken token = op.token();
    return op.pool()
        + "|"
        + op.block()
        + "|"
        + op.genstamp()
        + "|"
        + op.blockBytes()
        + "|"
        + op.stage()
        + "|"
        + op.client()
        + "|"
        + (token == null
            ? "none"
            : Arrays.toString(token.identifier()) + Arrays.toString(token.password()))
        + "|"
        + op.targets()
        + "|"
        + op.pipelineSize()
        + "|"
        + op.checksum();
  }

  private static int body(byte[] header) {
    int body = 3;
    while (header[body] < 0) {
      body++;
    }
    return body + 1;
  }

  private static byte[] header(Random random, BlockConstructionStage stage) {
    Token<BlockTokenIdentifier> token = new Token<>();
    if (random.nextBoolean()) {
      byte[] identifier = new byte[1 + random.nextInt(300)];
      byte[] password = new byte[20];
      random.nextBytes(identifier);
      random.nextBytes(password);
      token = new Token<>(identifier, password, new Text("HDFS_BLOCK_TOKEN"), new Text("s"));
    }
    int dataNodes = 1 + random.nextInt(5);
    return StockBytes.writeHeader(
        dataNodes,
        random.nextInt(dataNodes) + 1,
        stage,
        random.nextBoolean() ? "DFSClient_NONMAPREDUCE_1" : "",
        token,
        random.nextLong() >>> 1 + random.nextInt(60),
        random.nextBoolean() ? 0 : random.nextLong() >>> 1);
  }

  @Test
  void whatStockCodeWritesIsReadAlike() throws IOException {
    Random random = new Random(5);
    for (int round = 0; round < 200; round++) {
      for (BlockConstructionStage stage : BlockConstructionStage.values()) {
        byte[] header = header(random, stage);
        WriteOp read = WriteOpFields.read(header, body(header));
        assertNotNull(read, "stock code's own header is none that it alone can read");
        assertEquals(said(WriteOp.parseByStockCode(header, body(header))), said(read));
      }
    }
  }

  /** Whatever a stranger makes of a header: either stock code reads it, or it is read alike. */
  @Test
  void whatIsDamagedIsReadAlikeOrLeftToStockCode() {
    Random random = new Random(6);
    int read = 0;
    for (int round = 0; round < 20_000; round++) {
      byte[] header = header(random, BlockConstructionStage.PIPELINE_SETUP_CREATE);
      int body = body(header);
      for (int i = 1 + random.nextInt(3); i > 0; i--) {
        header[body + random.nextInt(header.length - body)] = (byte) random.nextInt();
      }
      WriteOp mine = WriteOpFields.read(header, body);
      if (mine == null) {
        continue;
      }
      try {
        assertEquals(said(WriteOp.parseByStockCode(header, body)), said(mine));
        read++;
      } catch (IOException e) {
        // Its reader knows more rules, as for what is skipped here; DataNodes apply them.
      }
    }
    assertTrue(read > 1000, "read " + read);
  }

  /** Of a field that is there twice stock code takes the last, or both together. */
  @Test
  void aFieldThatComesTwiceIsLeftToStockCode() throws IOException {
    byte[] header = header(new Random(7), BlockConstructionStage.PIPELINE_SETUP_CREATE);
    int body = body(header);
    byte[] twice = Arrays.copyOf(header, header.length + 2);
    twice[header.length] = 5 << 3; // the size of the pipeline
    twice[header.length + 1] = 9;
    assertNull(WriteOpFields.read(twice, body));
    assertEquals(9, WriteOp.parse(twice, body).pipelineSize());
  }
}

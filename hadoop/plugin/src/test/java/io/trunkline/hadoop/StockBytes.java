package io.trunkline.hadoop;

import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo;
import org.apache.hadoop.hdfs.protocol.DatanodeInfo.DatanodeInfoBuilder;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.hdfs.protocol.datatransfer.BlockConstructionStage;
import org.apache.hadoop.hdfs.protocol.datatransfer.PacketHeader;
import org.apache.hadoop.hdfs.protocol.datatransfer.Sender;
import org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.BlockOpResponseProto;
import org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.PipelineAckProto;
import org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.Status;
import org.apache.hadoop.hdfs.security.token.block.BlockTokenIdentifier;
import org.apache.hadoop.hdfs.server.datanode.CachingStrategy;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.thirdparty.protobuf.Message;
import org.apache.hadoop.util.DataChecksum;

/** Makes the bytes that stock HDFS code writes on a data-transfer connection. */
public final class StockBytes {
  public static final int CHUNK = 512;
  public static final int SEGMENT = 126 * CHUNK;
  public static final String POOL = "BP-1-127.0.0.1-1";
  public static final long BLOCK = 1073741825L;
  public static final long GENSTAMP = 1001;
  public static final DataChecksum CHECKSUM =
      DataChecksum.newDataChecksum(DataChecksum.Type.CRC32C, CHUNK);

  private StockBytes() {}

  /** Header of a write as the client sends it to the first of some DataNodes. */
  public static byte[] writeHeader(int dataNodes, BlockConstructionStage stage, String client) {
    return writeHeader(dataNodes, dataNodes, stage, client, new Token<>(), 128L << 20);
  }

  /**
   * Header of a write as it stands before the last {@code left} of some DataNodes, the receiver
   * included.
   */
  public static byte[] writeHeader(
      int dataNodes,
      int left,
      BlockConstructionStage stage,
      String client,
      Token<BlockTokenIdentifier> token,
      long blockBytes) {
    return writeHeader(dataNodes, left, stage, client, token, blockBytes, 0);
  }

  /** The same where the write gives the block a new generation stamp, 0 for none. */
  public static byte[] writeHeader(
      int dataNodes,
      int left,
      BlockConstructionStage stage,
      String client,
      Token<BlockTokenIdentifier> token,
      long blockBytes,
      long newGenstamp) {
    ExtendedBlock block = new ExtendedBlock(POOL, BLOCK, blockBytes, GENSTAMP);
    return writeHeader(block, dataNodes, left, stage, client, token, newGenstamp);
  }

  /** Header of a write of some block to a single DataNode. */
  public static byte[] writeHeader(ExtendedBlock block, Token<BlockTokenIdentifier> token) {
    BlockConstructionStage stage = BlockConstructionStage.PIPELINE_SETUP_CREATE;
    return writeHeader(block, 1, 1, stage, "client", token, 0);
  }

  private static byte[] writeHeader(
      ExtendedBlock block,
      int dataNodes,
      int left,
      BlockConstructionStage stage,
      String client,
      Token<BlockTokenIdentifier> token,
      long newGenstamp) {
    DatanodeInfo[] targets = new DatanodeInfo[left];
    StorageType[] types = new StorageType[left];
    String[] ids = new String[left];
    for (int i = 0; i < left; i++) {
      targets[i] =
          new DatanodeInfoBuilder()
              .setIpAddr("127.0.0." + (i + 1))
              .setHostName("dn" + i)
              .setDatanodeUuid("uuid" + i)
              .setXferPort(9866)
              .build();
      types[i] = StorageType.DISK;
      ids[i] = "storage" + i;
    }
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try {
      new Sender(new DataOutputStream(out))
          .writeBlock(
              block,
              StorageType.DISK,
              token,
              client,
              targets,
              types,
              null,
              stage,
              dataNodes,
              0,
              0,
              newGenstamp,
              CHECKSUM,
              CachingStrategy.newDefaultStrategy(),
              false,
              false,
              new boolean[left],
              ids[0],
              ids);
    } catch (IOException e) {
      throw new AssertionError(e);
    }
    return out.toByteArray();
  }

  /** One packet with right checksums. */
  public static byte[] packet(long offset, long seqno, boolean last, byte[] data) {
    int chunks = (data.length + CHUNK - 1) / CHUNK;
    byte[] checksums = new byte[4 * chunks];
    CHECKSUM.calculateChunkedSums(ByteBuffer.wrap(data), ByteBuffer.wrap(checksums));
    PacketHeader header =
        new PacketHeader(
            4 + checksums.length + data.length, offset, seqno, last, data.length, false);
    byte[] head = header.getBytes();
    return ByteBuffer.allocate(head.length + checksums.length + data.length)
        .put(head)
        .put(checksums)
        .put(data)
        .array();
  }

  /** A heartbeat, as the client sends it on an idle pipeline. */
  public static byte[] heartbeat() {
    return packet(0, -1, false, new byte[0]);
  }

  /** What a DataNode says to a write that it takes. */
  public static byte[] writeAnswer() {
    return delimited(BlockOpResponseProto.newBuilder().setStatus(Status.SUCCESS).build());
  }

  /** One acknowledgement, with what each DataNode of the pipeline says. */
  public static byte[] ack(long seqno, Status... replies) {
    return delimited(
        PipelineAckProto.newBuilder().setSeqno(seqno).addAllReply(List.of(replies)).build());
  }

  private static byte[] delimited(Message message) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    try {
      message.writeDelimitedTo(out);
    } catch (IOException e) {
      throw new AssertionError(e);
    }
    return out.toByteArray();
  }

  /** Random bytes. */
  public static byte[] random(Random random, int length) {
    byte[] bytes = new byte[length];
    random.nextBytes(bytes);
    return bytes;
  }
}

package io.trunkline.hadoop.wire;

import java.io.IOException;
import org.apache.hadoop.hdfs.protocol.datatransfer.DataTransferProtoUtil;
import org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.OpWriteBlockProto;
import org.apache.hadoop.hdfs.protocol.proto.HdfsProtos.ExtendedBlockProto;
import org.apache.hadoop.security.proto.SecurityProtos.TokenProto;
import org.apache.hadoop.thirdparty.protobuf.CodedInputStream;
import org.apache.hadoop.util.DataChecksum;

/**
 * What the header of a write says, as far as it decides how the bytes travel.
 *
 * @param header the header's bytes as they stood on the wire
 * @param pool block pool
 * @param block block id
 * @param genstamp generation stamp that the block gets by this write
 * @param blockBytes size at which the client will end the block, 0 when it does not say
 * @param stage stage of the pipeline
 * @param client name of the client, empty when a DataNode writes by itself
 * @param token the block access token that came with it, null for none
 * @param targets DataNodes after the one that this header is sent to
 * @param pipelineSize DataNodes of the whole pipeline
 * @param checksum kind of checksum that the client uses
 */
public record WriteOp(
    byte[] header,
    String pool,
    long block,
    long genstamp,
    long blockBytes,
    OpWriteBlockProto.BlockConstructionStage stage,
    String client,
    BlockToken token,
    int targets,
    int pipelineSize,
    DataChecksum checksum) {

  /**
   * Parses a header.
   *
   * @param header the whole header
   * @param body where in it the message begins
   * @throws IOException when it is malformed
   */
  static WriteOp parse(byte[] header, int body) throws IOException {
    WriteOp plain = WriteOpFields.read(header, body);
    return plain != null ? plain : parseByStockCode(header, body);
  }

  /** As DataNodes do it. */
  static WriteOp parseByStockCode(byte[] header, int body) throws IOException {
    OpWriteBlockProto proto =
        OpWriteBlockProto.parseFrom(
            CodedInputStream.newInstance(header, body, header.length - body));
    var base = proto.getHeader().getBaseHeader();
    ExtendedBlockProto block = base.getBlock();
    DataChecksum checksum;
    try {
      checksum = DataTransferProtoUtil.fromProto(proto.getRequestedChecksum());
    } catch (RuntimeException e) {
      throw new IOException("header of a write with an unknown kind of checksum", e);
    }
    if (checksum == null) {
      throw new IOException("header of a write with a wrong size of checksum chunks");
    }
    return new WriteOp(
        header,
        block.getPoolId(),
        block.getBlockId(),
        proto.getLatestGenerationStamp() != 0
            ? proto.getLatestGenerationStamp()
            : block.getGenerationStamp(),
        block.getNumBytes(),
        proto.getStage(),
        proto.getHeader().getClientName(),
        base.hasToken() ? token(base.getToken()) : null,
        proto.getTargetsCount(),
        proto.getPipelineSize(),
        checksum);
  }

  private static BlockToken token(TokenProto token) {
    return token.getIdentifier().isEmpty()
        ? null
        : new BlockToken(token.getIdentifier().toByteArray(), token.getPassword().toByteArray());
  }

  /**
   * Where in the pipeline the DataNode stands that this header is sent to.
   *
   * @return from 0
   */
  public int position() {
    return pipelineSize - targets - 1;
  }

  /**
   * Whether a client, and not a DataNode before it in the pipeline, sends this header.
   *
   * @return true for the first hop
   */
  public boolean firstHop() {
    return position() == 0;
  }

  /**
   * Whether packets follow that the pipeline mirrors: not so for a transfer between DataNodes, or
   * for a pipeline that is only being closed.
   *
   * @return true when they do
   */
  public boolean mirrored() {
    return !client.isEmpty()
        && switch (stage) {
          case PIPELINE_SETUP_CREATE,
              PIPELINE_SETUP_APPEND,
              PIPELINE_SETUP_APPEND_RECOVERY,
              PIPELINE_SETUP_STREAMING_RECOVERY ->
              true;
          default -> false;
        };
  }

  /**
   * Names the write in logs.
   *
   * @return block and generation stamp, as Hadoop prints them
   */
  public String id() {
    return pool + ":blk_" + block + "_" + genstamp;
  }
}

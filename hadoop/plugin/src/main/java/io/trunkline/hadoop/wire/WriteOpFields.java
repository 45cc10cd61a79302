package io.trunkline.hadoop.wire;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.hdfs.protocol.proto.DataTransferProtos.OpWriteBlockProto.BlockConstructionStage;
import org.apache.hadoop.util.DataChecksum;

/**
 * The fields of a write's header, the message OpWriteBlockProto of datatransfer.proto, as stock
 * code writes them: each once, all that are required. A header that is otherwise is left to stock
 * code's own classes. Those are slow as long as they are not compiled, and a client writes one
 * header a block.
 */
final class WriteOpFields {
  // OpWriteBlockProto
  private static final int HEADER = 1 << 3 | Fields.BYTES;
  private static final int TARGETS = 2 << 3 | Fields.BYTES;
  private static final int STAGE = 4 << 3 | Fields.VARIABLE;
  private static final int PIPELINE_SIZE = 5 << 3 | Fields.VARIABLE;
  private static final int LATEST_GENSTAMP = 8 << 3 | Fields.VARIABLE;
  private static final int CHECKSUM = 9 << 3 | Fields.BYTES;

  // ClientOperationHeaderProto
  private static final int BASE_HEADER = 1 << 3 | Fields.BYTES;
  private static final int CLIENT = 2 << 3 | Fields.BYTES;

  // BaseHeaderProto
  private static final int BLOCK = 1 << 3 | Fields.BYTES;
  private static final int TOKEN = 2 << 3 | Fields.BYTES;

  // ExtendedBlockProto
  private static final int POOL = 1 << 3 | Fields.BYTES;
  private static final int BLOCK_ID = 2 << 3 | Fields.VARIABLE;
  private static final int GENSTAMP = 3 << 3 | Fields.VARIABLE;
  private static final int BLOCK_BYTES = 4 << 3 | Fields.VARIABLE;

  // TokenProto
  private static final int IDENTIFIER = 1 << 3 | Fields.BYTES;
  private static final int PASSWORD = 2 << 3 | Fields.BYTES;
  private static final int KIND = 3 << 3 | Fields.BYTES;
  private static final int SERVICE = 4 << 3 | Fields.BYTES;

  // ChecksumProto
  private static final int CHECKSUM_TYPE = 1 << 3 | Fields.VARIABLE;
  private static final int CHUNK = 2 << 3 | Fields.VARIABLE;

  /** Of its field numbers, all below 32, those that were there: a bit each, for each message. */
  private int inWrite;

  private int inHeader;
  private int inBase;
  private int inBlock;
  private int inToken;
  private int inChecksum;

  /** A field came twice, or none of Hadoop's own has such a value. */
  private boolean unusual;

  private int targets;
  private BlockConstructionStage stage;
  private int pipelineSize;
  private long latestGenstamp;
  private String client;
  private String pool;
  private long blockId;
  private long genstamp;
  private long blockBytes;
  private byte[] identifier;
  private byte[] password;
  private DataChecksum.Type checksumType;
  private int chunk;

  private WriteOpFields() {}

  /**
   * Reads a header.
   *
   * @param header the whole header
   * @param body where in it the message begins
   * @return the write, or null when stock code's classes are to read it
   */
  static WriteOp read(byte[] header, int body) {
    WriteOpFields fields = new WriteOpFields();
    try {
      fields.write(new Fields(header, body, header.length));
    } catch (IOException e) {
      // Stock code has the say, and the words, for what is malformed.
      return null;
    }
    return fields.usual() ? fields.op(header) : null;
  }

  private boolean usual() {
    return !unusual
        && has(inWrite, HEADER, STAGE, PIPELINE_SIZE, CHECKSUM)
        && has(inHeader, BASE_HEADER, CLIENT)
        && has(inBase, BLOCK)
        && has(inBlock, POOL, BLOCK_ID, GENSTAMP)
        && (inToken == 0 || has(inToken, IDENTIFIER, PASSWORD, KIND, SERVICE))
        && has(inChecksum, CHECKSUM_TYPE, CHUNK)
        && chunk > 0;
  }

  private static boolean has(int there, int... tags) {
    for (int tag : tags) {
      if ((there & bit(tag)) == 0) {
        return false;
      }
    }
    return true;
  }

  private static int bit(int tag) {
    return 1 << (tag >>> 3);
  }

  private WriteOp op(byte[] header) {
    return new WriteOp(
        header,
        pool,
        blockId,
        latestGenstamp != 0 ? latestGenstamp : genstamp,
        blockBytes,
        stage,
        client,
        identifier == null || identifier.length == 0 ? null : new BlockToken(identifier, password),
        targets,
        pipelineSize,
        DataChecksum.newDataChecksum(checksumType, chunk));
  }

  /** Notes that a field is there; each may be so once. */
  private int once(int there, int tag) {
    unusual |= (there & bit(tag)) != 0;
    return there | bit(tag);
  }

  private void write(Fields in) throws IOException {
    while (in.more()) {
      int tag = (int) in.variable();
      switch (tag) {
        case HEADER -> {
          inWrite = once(inWrite, tag);
          header(in.inner());
        }
        case TARGETS -> {
          targets++;
          in.skip(tag);
        }
        case STAGE -> {
          inWrite = once(inWrite, tag);
          stage = BlockConstructionStage.forNumber((int) in.variable());
          unusual |= stage == null;
        }
        case PIPELINE_SIZE -> {
          inWrite = once(inWrite, tag);
          pipelineSize = (int) in.variable();
        }
        case LATEST_GENSTAMP -> {
          inWrite = once(inWrite, tag);
          latestGenstamp = in.variable();
        }
        case CHECKSUM -> {
          inWrite = once(inWrite, tag);
          checksum(in.inner());
        }
        default -> other(in, tag, HEADER, TARGETS, STAGE, PIPELINE_SIZE, LATEST_GENSTAMP, CHECKSUM);
      }
    }
  }

  private void header(Fields in) throws IOException {
    while (in.more()) {
      int tag = (int) in.variable();
      switch (tag) {
        case BASE_HEADER -> {
          inHeader = once(inHeader, tag);
          base(in.inner());
        }
        case CLIENT -> {
          inHeader = once(inHeader, tag);
          client = text(in);
        }
        default -> other(in, tag, BASE_HEADER, CLIENT);
      }
    }
  }

  private void base(Fields in) throws IOException {
    while (in.more()) {
      int tag = (int) in.variable();
      switch (tag) {
        case BLOCK -> {
          inBase = once(inBase, tag);
          block(in.inner());
        }
        case TOKEN -> {
          inBase = once(inBase, tag);
          token(in.inner());
        }
        default -> other(in, tag, BLOCK, TOKEN);
      }
    }
  }

  private void block(Fields in) throws IOException {
    while (in.more()) {
      int tag = (int) in.variable();
      switch (tag) {
        case POOL -> {
          inBlock = once(inBlock, tag);
          pool = text(in);
        }
        case BLOCK_ID -> {
          inBlock = once(inBlock, tag);
          blockId = in.variable();
        }
        case GENSTAMP -> {
          inBlock = once(inBlock, tag);
          genstamp = in.variable();
        }
        case BLOCK_BYTES -> {
          inBlock = once(inBlock, tag);
          blockBytes = in.variable();
        }
        default -> other(in, tag, POOL, BLOCK_ID, GENSTAMP, BLOCK_BYTES);
      }
    }
  }

  private void token(Fields in) throws IOException {
    while (in.more()) {
      int tag = (int) in.variable();
      switch (tag) {
        case IDENTIFIER -> {
          inToken = once(inToken, tag);
          identifier = in.bytes();
        }
        case PASSWORD -> {
          inToken = once(inToken, tag);
          password = in.bytes();
        }
        case KIND, SERVICE -> {
          inToken = once(inToken, tag);
          in.skip(tag);
        }
        default -> other(in, tag, IDENTIFIER, PASSWORD, KIND, SERVICE);
      }
    }
    // An empty message is a token, too: it lacks what every token has.
    unusual |= inToken == 0;
  }

  private void checksum(Fields in) throws IOException {
    while (in.more()) {
      int tag = (int) in.variable();
      switch (tag) {
        case CHECKSUM_TYPE -> {
          inChecksum = once(inChecksum, tag);
          checksumType = type((int) in.variable());
          unusual |= checksumType == null;
        }
        case CHUNK -> {
          inChecksum = once(inChecksum, tag);
          chunk = (int) in.variable();
        }
        default -> other(in, tag, CHECKSUM_TYPE, CHUNK);
      }
    }
  }

  /** Those of ChecksumTypeProto. */
  private static DataChecksum.Type type(int number) {
    return switch (number) {
      case 0 -> DataChecksum.Type.NULL;
      case 1 -> DataChecksum.Type.CRC32;
      case 2 -> DataChecksum.Type.CRC32C;
      default -> null;
    };
  }

  private static String text(Fields in) throws IOException {
    return new String(in.bytes(), StandardCharsets.UTF_8);
  }

  /**
   * Passes over a field that does not matter here; one of those that do, otherwise encoded, does.
   */
  private void other(Fields in, int tag, int... known) throws IOException {
    for (int one : known) {
      unusual |= one >>> 3 == tag >>> 3;
    }
    in.skip(tag);
  }
}

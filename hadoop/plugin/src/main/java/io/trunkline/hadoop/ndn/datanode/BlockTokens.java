package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.wire.WriteOp;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.util.EnumSet;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.hdfs.security.token.block.BlockPoolTokenSecretManager;
import org.apache.hadoop.hdfs.security.token.block.BlockTokenIdentifier;
import org.apache.hadoop.hdfs.security.token.block.BlockTokenIdentifier.AccessMode;
import org.apache.hadoop.io.WritableUtils;

/**
 * The passwords of block tokens, as a DataNode makes them out of the tokens' identifiers and the
 * keys that it shares with the NameNode.
 */
final class BlockTokens {
  /** Of the tokens whose passwords are secrets of the DataNodes. No user can have this name. */
  static final String RESERVED_USER = "trunkline content key";

  private final BlockPoolTokenSecretManager secrets;

  /**
   * Those of a DataNode.
   *
   * @param secrets its keys
   */
  BlockTokens(BlockPoolTokenSecretManager secrets) {
    this.secrets = secrets;
  }

  /**
   * The password of a token.
   *
   * @param identifier the token's identifier, from whoever it may be
   * @return the password, the caller's to wipe
   * @throws IOException when it is no identifier, has expired, or is of keys that are not known
   */
  byte[] password(byte[] identifier) throws IOException {
    try {
      return secrets.retrievePassword(parse(identifier));
    } catch (RuntimeException e) {
      throw new IOException("block token: " + e.getMessage(), e);
    }
  }

  /** What an identifier says, from whoever it may be. */
  static BlockTokenIdentifier identifier(byte[] identifier) throws IOException {
    refuseHuge(identifier);
    BlockTokenIdentifier token = new BlockTokenIdentifier();
    try {
      token.readFields(new DataInputStream(new ByteArrayInputStream(identifier)));
    } catch (RuntimeException e) {
      throw new IOException("block token: " + e.getMessage(), e);
    }
    return token;
  }

  /**
   * Who may read a block, as the token says.
   *
   * @param password the token's
   * @param serial serial number of the block key that it was made with
   */
  record Reader(byte[] password, int serial) {
    @Override
    public String toString() {
      return "Reader(block key " + serial + ")";
    }
  }

  /**
   * Checks a token as stock code does it before it sends a block. Whoever brings the identifier has
   * still to show that it has the password.
   *
   * @param identifier the token's identifier, from whoever it may be
   * @param block what is to be read
   * @return the password, and the key that it was made with
   * @throws IOException when it is no identifier, has expired, is of keys that are not known, of
   *     another block, or does not permit to read
   */
  Reader reader(byte[] identifier, ExtendedBlock block) throws IOException {
    try {
      BlockTokenIdentifier token = parse(identifier);
      byte[] password = secrets.retrievePassword(token);
      secrets.checkAccess(token, null, block, AccessMode.READ);
      return new Reader(password, token.getKeyId());
    } catch (RuntimeException e) {
      throw new IOException("block token: " + e.getMessage(), e);
    }
  }

  /**
   * Whether a write's token is for its block, and for writing. Stock code checks that, too, and has
   * the answer for whoever asks in vain; it does so when the plug-in has read the header already.
   *
   * @param op the write, whose token's password was shown
   * @return false when stock code will refuse it
   */
  static boolean permits(WriteOp op) {
    if (op.token() == null) {
      return false;
    }
    try {
      BlockTokenIdentifier token = identifier(op.token().identifier());
      return op.pool().equals(token.getBlockPoolId())
          && op.block() == token.getBlockId()
          && token.getAccessModes().contains(AccessMode.WRITE);
    } catch (IOException e) {
      return false;
    }
  }

  /**
   * What all DataNodes that hold a block can make of one of the block keys, and nobody else: the
   * password of a token that no NameNode issues, and that permits nothing.
   *
   * @param pool block pool
   * @param block block id
   * @param serial serial number of the block key
   * @return the secret
   * @throws IOException when the key is not known
   */
  byte[] secret(String pool, long block, int serial) throws IOException {
    BlockTokenIdentifier nobodys =
        new BlockTokenIdentifier(
            RESERVED_USER,
            pool,
            block,
            EnumSet.noneOf(AccessMode.class),
            new StorageType[0],
            new String[0],
            false);
    nobodys.setKeyId(serial);
    nobodys.setExpiryDate(Long.MAX_VALUE);
    try {
      return secrets.retrievePassword(nobodys);
    } catch (RuntimeException e) {
      throw new IOException("block key " + serial + ": " + e.getMessage(), e);
    }
  }

  private static BlockTokenIdentifier parse(byte[] identifier) throws IOException {
    BlockTokenIdentifier token = identifier(identifier);
    if (RESERVED_USER.equals(token.getUserId()) || token.getExpiryDate() == Long.MAX_VALUE) {
      throw new IOException("block token is none that a NameNode issues");
    }
    return token;
  }

  /**
   * Stock code makes arrays of whatever lengths stand in an identifier of the older of its two
   * forms, before it finds out that there is not so much. Here none may be larger than what is
   * left.
   */
  static void refuseHuge(byte[] identifier) throws IOException {
    if (identifier.length == 0 || identifier[0] > 0) {
      return; // a message of protocol buffers, whose reader minds its bounds
    }
    ByteBuffer in = ByteBuffer.wrap(identifier);
    try {
      number(in); // when it expires
      number(in); // the key's id
      skip(in, in.getInt()); // the user
      skip(in, in.getInt()); // the block pool
      number(in); // the block
      for (long modes = count(in); modes > 0; modes--) {
        skip(in, number(in));
      }
      for (long types = count(in); types > 0; types--) {
        skip(in, number(in));
      }
      for (long storages = count(in); storages > 0; storages--) {
        skip(in, in.getInt());
      }
      if (in.hasRemaining()) {
        skip(in, number(in)); // of a handshake
      }
    } catch (BufferUnderflowException e) {
      throw new IOException("block token is cut off", e);
    }
  }

  /** How many of something follow, each of a byte at least. */
  private static long count(ByteBuffer in) throws IOException {
    long count = number(in);
    if (count < 0 || count > in.remaining()) {
      throw new IOException("block token with " + count + " of something in " + in.remaining());
    }
    return count;
  }

  private static void skip(ByteBuffer in, long length) throws IOException {
    // A string that is null has length -1.
    if (length < -1 || length > in.remaining()) {
      throw new IOException("block token with " + length + " bytes in " + in.remaining());
    }
    in.position(in.position() + (int) Math.max(0, length));
  }

  /** A number as {@link WritableUtils#writeVLong} writes it. */
  private static long number(ByteBuffer in) {
    byte first = in.get();
    int size = WritableUtils.decodeVIntSize(first);
    if (size == 1) {
      return first;
    }
    long value = 0;
    for (int i = 1; i < size; i++) {
      value = value << 8 | in.get() & 0xFF;
    }
    return WritableUtils.isNegativeVInt(first) ? ~value : value;
  }
}

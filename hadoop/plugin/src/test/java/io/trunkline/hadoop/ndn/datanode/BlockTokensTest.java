package io.trunkline.hadoop.ndn.datanode;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.StockBytes;
import io.trunkline.hadoop.wire.OpHeader;
import io.trunkline.hadoop.wire.WriteOp;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.Random;
import org.apache.hadoop.fs.StorageType;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.hdfs.security.token.block.BlockPoolTokenSecretManager;
import org.apache.hadoop.hdfs.security.token.block.BlockTokenIdentifier;
import org.apache.hadoop.hdfs.security.token.block.BlockTokenIdentifier.AccessMode;
import org.apache.hadoop.hdfs.security.token.block.BlockTokenSecretManager;
import org.apache.hadoop.io.WritableUtils;
import org.apache.hadoop.security.token.Token;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Passwords of tokens, and of what strangers say is one. */
class BlockTokensTest {
  static final String POOL = "BP-1-127.0.0.1-1";

  /** The keys of a NameNode, which a DataNode of its has, too. */
  static BlockTokenSecretManager keys(boolean protobuf) {
    return new BlockTokenSecretManager(600_000, 600_000, 0, 1, POOL, null, protobuf);
  }

  static BlockTokens of(BlockTokenSecretManager keys) {
    BlockPoolTokenSecretManager secrets = new BlockPoolTokenSecretManager();
    secrets.addBlockPool(POOL, keys);
    return new BlockTokens(secrets);
  }

  static Token<BlockTokenIdentifier> token(BlockTokenSecretManager keys, int replicas)
      throws IOException {
    return token(keys, replicas, AccessMode.WRITE);
  }

  private static Token<BlockTokenIdentifier> token(
      BlockTokenSecretManager keys, int replicas, AccessMode mode) throws IOException {
    StorageType[] types = new StorageType[replicas];
    String[] ids = new String[replicas];
    Arrays.fill(types, StorageType.DISK);
    Arrays.fill(ids, "DS-8a4c1f0e-7f4d-4f5c-9d0e-0123456789ab");
    return keys.generateToken(
        "somebody", new ExtendedBlock(POOL, 1073741825L, 0, 1001), EnumSet.of(mode), types, ids);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void theDataNodeKnowsThePassword(boolean protobuf) throws IOException {
    BlockTokenSecretManager keys = keys(protobuf);
    for (int replicas : new int[] {1, 3, 20}) {
      Token<BlockTokenIdentifier> token = token(keys, replicas);
      assertArrayEquals(token.getPassword(), of(keys).password(token.getIdentifier()));
    }
  }

  @Test
  void ofAnotherClusterOrPoolOrTimeItIsRefused() throws IOException {
    Token<BlockTokenIdentifier> token = token(keys(false), 3);
    assertThrows(IOException.class, () -> of(keys(false)).password(token.getIdentifier()));
    assertThrows(
        IOException.class,
        () -> new BlockTokens(new BlockPoolTokenSecretManager()).password(token.getIdentifier()));
    BlockTokenSecretManager brief =
        new BlockTokenSecretManager(600_000, -1000, 0, 1, POOL, null, false);
    byte[] expired = token(brief, 3).getIdentifier();
    assertThrows(IOException.class, () -> of(brief).password(expired));
    assertThrows(IOException.class, () -> of(brief).password(new byte[0]));
  }

  private static ExtendedBlock block(long id) {
    return new ExtendedBlock(POOL, id, 0, 1001);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void whoHasATokenThatReadsMayRead(boolean protobuf) throws IOException {
    BlockTokenSecretManager keys = keys(protobuf);
    Token<BlockTokenIdentifier> token = token(keys, 3, AccessMode.READ);
    BlockTokens.Reader reader = of(keys).reader(token.getIdentifier(), block(1073741825L));
    assertArrayEquals(token.getPassword(), reader.password());
    assertEquals(token.decodeIdentifier().getKeyId(), reader.serial());
    assertEquals("Reader(block key " + reader.serial() + ")", reader.toString());
  }

  @Test
  void nobodyElseMay() throws IOException {
    BlockTokenSecretManager keys = keys(false);
    byte[] reads = token(keys, 3, AccessMode.READ).getIdentifier();
    byte[] writes = token(keys, 3, AccessMode.WRITE).getIdentifier();
    ExtendedBlock block = block(1073741825L);
    assertThrows(IOException.class, () -> of(keys).reader(writes, block));
    assertThrows(IOException.class, () -> of(keys).reader(reads, block(1073741826L)));
    assertThrows(
        IOException.class,
        () -> of(keys).reader(reads, new ExtendedBlock("BP-2", 1073741825L, 0, 1001)));
    assertThrows(IOException.class, () -> of(keys(false)).reader(reads, block));
    BlockTokenSecretManager brief =
        new BlockTokenSecretManager(600_000, -1000, 0, 1, POOL, null, false);
    byte[] expired = token(brief, 3, AccessMode.READ).getIdentifier();
    assertThrows(IOException.class, () -> of(brief).reader(expired, block));
    for (byte[] none : new byte[][] {new byte[0], {-1}, {-128, 1, 2}}) {
      assertThrows(IOException.class, () -> of(keys).reader(none, block));
    }
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aWriteIsBegunWithATokenThatWritesItsBlock(boolean protobuf) throws IOException {
    BlockTokenSecretManager keys = keys(protobuf);
    Token<BlockTokenIdentifier> writes = token(keys, 3, AccessMode.WRITE);
    assertTrue(BlockTokens.permits(write(block(1073741825L), writes)));
    assertFalse(BlockTokens.permits(write(block(1073741826L), writes)));
    ExtendedBlock elsewhere = new ExtendedBlock("BP-2", 1073741825L, 0, 1001);
    assertFalse(BlockTokens.permits(write(elsewhere, writes)));
    Token<BlockTokenIdentifier> reads = token(keys, 3, AccessMode.READ);
    assertFalse(BlockTokens.permits(write(block(1073741825L), reads)));
    Token<BlockTokenIdentifier> none =
        new Token<>(new byte[] {-128, 1, 2}, new byte[0], null, null);
    assertFalse(BlockTokens.permits(write(block(1073741825L), none)));
  }

  private static WriteOp write(ExtendedBlock block, Token<BlockTokenIdentifier> token)
      throws IOException {
    return OpHeader.parseWrite(ByteBuffer.wrap(StockBytes.writeHeader(block, token)));
  }

  @Test
  void secretsAreOfOneBlockAndKey() throws IOException {
    BlockTokenSecretManager keys = keys(false);
    int serial = token(keys, 1).decodeIdentifier().getKeyId();
    byte[] secret = of(keys).secret(POOL, 7, serial);
    assertArrayEquals(secret, of(keys).secret(POOL, 7, serial));
    assertFalse(Arrays.equals(secret, of(keys).secret(POOL, 8, serial)));
    assertThrows(IOException.class, () -> of(keys).secret(POOL, 7, serial + 100));
    assertThrows(IOException.class, () -> of(keys).secret("BP-2", 7, serial));

    // A DataNode that has been sent the keys makes the same of them.
    BlockTokenSecretManager dataNodes =
        new BlockTokenSecretManager(600_000, 600_000, POOL, null, true);
    addKeys(dataNodes, keys);
    assertArrayEquals(secret, of(dataNodes).secret(POOL, 7, serial));
  }

  /** The method has another parameter in later versions of Hadoop. */
  private static void addKeys(BlockTokenSecretManager to, BlockTokenSecretManager from) {
    for (Method method : BlockTokenSecretManager.class.getMethods()) {
      if (method.getName().equals("addKeys")) {
        Object[] args = new Object[method.getParameterCount()];
        args[0] = from.exportKeys();
        if (args.length > 1) {
          args[1] = false;
        }
        try {
          method.invoke(to, args);
          return;
        } catch (ReflectiveOperationException e) {
          throw new AssertionError(e);
        }
      }
    }
  }

  /** Whoever could show it as a token would be told what DataNodes make keys of. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void whatSecretsAreMadeOfIsNoToken(boolean protobuf) throws IOException {
    BlockTokenSecretManager keys = keys(protobuf);
    int serial = token(keys, 1).decodeIdentifier().getKeyId();
    for (boolean reserved : new boolean[] {true, false}) {
      for (boolean forEver : new boolean[] {true, false}) {
        BlockTokenIdentifier token =
            new BlockTokenIdentifier(
                reserved ? BlockTokens.RESERVED_USER : "somebody",
                POOL,
                7,
                EnumSet.of(AccessMode.READ),
                new StorageType[0],
                new String[0],
                protobuf);
        token.setKeyId(serial);
        token.setExpiryDate(forEver ? Long.MAX_VALUE : System.currentTimeMillis() + 600_000);
        if (reserved || forEver) {
          assertThrows(IOException.class, () -> of(keys).reader(token.getBytes(), block(7)));
          assertThrows(IOException.class, () -> of(keys).password(token.getBytes()));
        } else {
          of(keys).reader(token.getBytes(), block(7));
        }
      }
    }
  }

  private static byte[] legacy(int user, int modes, int types, int storages, int handshake)
      throws IOException {
    ByteArrayOutputStream bytes = new ByteArrayOutputStream();
    DataOutputStream out = new DataOutputStream(bytes);
    WritableUtils.writeVLong(out, 1L << 45);
    WritableUtils.writeVInt(out, 77);
    out.writeInt(user);
    out.write(new byte[Math.max(0, Math.min(user, 4))]);
    WritableUtils.writeString(out, POOL);
    WritableUtils.writeVLong(out, 5);
    WritableUtils.writeVInt(out, modes);
    WritableUtils.writeVInt(out, types);
    WritableUtils.writeVInt(out, storages);
    WritableUtils.writeVInt(out, handshake);
    return bytes.toByteArray();
  }

  /** Each of these would have stock code make an array of gigabytes. */
  @Test
  void lengthsThatAreNotThereAreRefused() throws IOException {
    int huge = Integer.MAX_VALUE - 8;
    BlockTokens.refuseHuge(legacy(4, 0, 0, 0, 0));
    BlockTokens.refuseHuge(legacy(-1, 0, 0, 0, 0));
    for (byte[] hostile :
        new byte[][] {
          legacy(huge, 0, 0, 0, 0),
          legacy(-2, 0, 0, 0, 0),
          legacy(4, huge, 0, 0, 0),
          legacy(4, 0, huge, 0, 0),
          legacy(4, 0, -5, 0, 0),
          legacy(4, 0, 0, huge, 0),
          legacy(4, 0, 0, 0, huge),
          new byte[] {-1},
          new byte[] {-128, 1, 2},
        }) {
      assertThrows(IOException.class, () -> BlockTokens.refuseHuge(hostile));
      assertThrows(IOException.class, () -> of(keys(false)).password(hostile));
    }
  }

  @Test
  void randomBytesAreRefusedOtherwiseThanByAnError() throws IOException {
    Random random = new Random(3);
    BlockTokenSecretManager keys = keys(false);
    BlockTokens tokens = of(keys);
    byte[] right = token(keys, 3).getIdentifier();
    for (int round = 0; round < 20_000; round++) {
      byte[] bytes = Arrays.copyOf(right, random.nextInt(right.length + 20));
      for (int i = random.nextInt(5); i >= 0 && bytes.length > 0; i--) {
        bytes[random.nextInt(bytes.length)] = (byte) random.nextInt();
      }
      try {
        tokens.password(bytes);
      } catch (IOException e) {
        continue; // as it should be
      }
    }
  }
}

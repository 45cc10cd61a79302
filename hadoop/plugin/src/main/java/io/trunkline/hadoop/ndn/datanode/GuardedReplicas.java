package io.trunkline.hadoop.ndn.datanode;

import io.trunkline.hadoop.ndn.Native;
import io.trunkline.hadoop.ndn.NdnNode;
import io.trunkline.hadoop.ndn.wire.Preamble;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.util.LogLimit;
import io.trunkline.hadoop.wire.WriteOp;
import java.io.IOException;
import java.util.Arrays;
import java.util.HexFormat;
import org.apache.hadoop.hdfs.protocol.ExtendedBlock;
import org.apache.hadoop.hdfs.server.datanode.DataNode;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells the native library what it needs to serve finalized replicas where blocks have tokens:
 * where they lie, what their segments are sealed with, and the password of who asks for that. The
 * library seals what it reads, and gives the key to nobody who has not shown the password.
 *
 * <pre>
 *   pool block genstamp token identifier   may it read? then all of it
 *                       write              the key of the write that the replica came by
 *                       key serial         what all holders make with that block key
 * </pre>
 */
final class GuardedReplicas implements ServedReplicas {
  /**
   * What of a replica's keys is answered; null is not known or not asked.
   *
   * @param written the write's, which is remembered on
   * @param serial serial number of a block key
   * @param secret what is made with it
   * @param password that of the token that was asked with
   */
  record Keys(WriteKeys.Written written, int serial, byte[] secret, byte[] password)
      implements AutoCloseable {
    /** Has the secrets no more that were made for this answer. */
    @Override
    public void close() {
      for (byte[] made : new byte[][] {secret, password}) {
        if (made != null) {
          Arrays.fill(made, (byte) 0);
        }
      }
    }
  }

  private static final Logger LOG = LoggerFactory.getLogger(GuardedReplicas.class);

  /** Of all readers: strangers can bring refusals about as often as they like. */
  private static final LogLimit LINES = new LogLimit();

  private static final int WAIT_MS = 500;
  private static final long PAUSE_MS = 1000;

  private final DataNode dataNode;
  private final BlockTokens tokens;
  private final WriteKeys writes = new WriteKeys();
  private final long source;
  private final RequestLoop loop;

  /**
   * Begins to answer.
   *
   * @param node the forwarder
   * @param dataNode holds the replicas; it has none before it has registered
   * @param tokens knows passwords
   * @throws IOException when the forwarder is down
   */
  GuardedReplicas(NdnNode node, DataNode dataNode, BlockTokens tokens) throws IOException {
    this.dataNode = dataNode;
    this.tokens = tokens;
    source =
        Native.blockSourceOpen(
            node.handle(),
            node.names().blocks(),
            node.settings().segmentBytes(),
            node.settings().dataNodeOpenReplicas(),
            true);
    loop = new RequestLoop(() -> Native.blockSourceNext(source, WAIT_MS), this::answer, PAUSE_MS);
  }

  private void answer(String request) {
    boolean answered = false;
    try {
      answered = tryToAnswer(request);
    } catch (IOException | RuntimeException e) {
      LOG.debug("a replica is not served by name: {}", e.toString());
    } finally {
      if (!answered) {
        Native.blockSourceAnswer(source, request, null, null, 0, 0);
      }
    }
  }

  private boolean tryToAnswer(String request) throws IOException {
    String[] words = request.split(" ");
    if (words.length < 4) {
      throw new IOException("not \"pool block genstamp\" and what is asked");
    }
    String pool = words[0];
    long block = Long.parseLong(words[1]);
    long genstamp = Long.parseLong(words[2]);
    try (Keys keys = keys(new ExtendedBlock(pool, block, 0, genstamp), words)) {
      return keys != null && answer(request, pool, block, genstamp, keys);
    }
  }

  private boolean answer(String request, String pool, long block, long genstamp, Keys keys)
      throws IOException {
    ReplicaFiles files = ReplicaFiles.find(dataNode, pool, block, genstamp);
    if (files == null) {
      return false;
    }
    WriteKeys.Written written = keys.written;
    Native.blockSourceAnswerGuarded(
        source,
        request,
        files.block(),
        files.meta(),
        files.length(),
        files.genstamp(),
        written == null ? null : written.key().bytes(),
        written == null ? 0 : written.segmentBytes(),
        written == null ? 0 : written.segments(),
        written == null ? null : written.digest(),
        keys.serial,
        keys.secret,
        keys.password);
    return true;
  }

  private Keys keys(ExtendedBlock block, String[] words) throws IOException {
    String pool = block.getBlockPoolId();
    long id = block.getBlockId();
    switch (words[3]) {
      case "write":
        WriteKeys.Written written = writes.of(pool, id, block.getGenerationStamp());
        return written == null ? null : new Keys(written, 0, null, null);
      case "key":
        int serial = Integer.parseUnsignedInt(words[4]);
        return new Keys(null, serial, tokens.secret(pool, id, serial), null);
      case "token":
        BlockTokens.Reader reader = reader(block, HexFormat.of().parseHex(words[4]));
        try {
          return new Keys(
              writes.of(pool, id, block.getGenerationStamp()),
              reader.serial(),
              tokens.secret(pool, id, reader.serial()),
              reader.password());
        } catch (IOException e) {
          Arrays.fill(reader.password(), (byte) 0);
          throw e;
        }
      default:
        throw new IOException("nothing is known of \"" + words[3] + '"');
    }
  }

  private BlockTokens.Reader reader(ExtendedBlock block, byte[] identifier) throws IOException {
    try {
      return tokens.reader(identifier, block);
    } catch (IOException e) {
      TransferStats.get().add(Counter.READERS_REFUSED);
      if (LINES.allows()) {
        LOG.warn(
            "named data: a reader is refused: {}; more in a minute are only counted",
            Handshakes.shown(e.getMessage()));
      }
      throw e;
    }
  }

  @Override
  public WriteKeys.Write begins(WriteOp op, Preamble preamble) {
    Native.blockSourceInvalidate(source, op.pool(), op.block());
    return writes.begins(
        op.pool(), op.block(), op.genstamp(), preamble.key(), preamble.segmentBytes());
  }

  @Override
  public void close() {
    loop.stop();
    Native.blockSourceClose(source);
    loop.close();
  }
}

package io.trunkline.hadoop.read;

import io.trunkline.hadoop.Transports;
import io.trunkline.hadoop.conf.DataProtection;
import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.conf.TransportNames;
import io.trunkline.hadoop.ndn.read.NamedReplicas;
import io.trunkline.hadoop.stats.Fallback;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.transport.NotServed;
import io.trunkline.hadoop.wire.BlockToken;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.util.Collections;
import java.util.Map;
import java.util.WeakHashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.ReplicaAccessor;
import org.apache.hadoop.hdfs.ReplicaAccessorBuilder;
import org.apache.hadoop.hdfs.client.HdfsClientConfigKeys;
import org.apache.hadoop.security.token.Token;
import org.apache.hadoop.security.token.TokenIdentifier;

/**
 * Reads blocks by name, for {@code dfs.client.replica.accessor.builder.classes}. Where a block
 * cannot be had by name the answer is null, and stock code reads it from the DataNode it chose.
 */
public final class NamedReplicaAccessorBuilder extends ReplicaAccessorBuilder {
  /** Reading settings takes longer than a small read, and a client keeps its configuration. */
  private static final Map<Configuration, Settings> SETTINGS =
      Collections.synchronizedMap(new WeakHashMap<>());

  private long block;
  private String pool = "";
  private long genstamp;
  private boolean allowShortCircuit;
  private long visibleLength;
  private Configuration conf;
  private byte[] token = new byte[0];

  /** Made by the HDFS client, once for each block reader. */
  public NamedReplicaAccessorBuilder() {}

  @Override
  public ReplicaAccessorBuilder setFileName(String name) {
    return this;
  }

  @Override
  public ReplicaAccessorBuilder setBlock(long blockId, String blockPoolId) {
    block = blockId;
    pool = blockPoolId;
    return this;
  }

  @Override
  public ReplicaAccessorBuilder setGenerationStamp(long generationStamp) {
    genstamp = generationStamp;
    return this;
  }

  @Override
  public ReplicaAccessorBuilder setVerifyChecksum(boolean verify) {
    return this;
  }

  @Override
  public ReplicaAccessorBuilder setClientName(String clientName) {
    return this;
  }

  @Override
  public ReplicaAccessorBuilder setAllowShortCircuitReads(boolean allow) {
    allowShortCircuit = allow;
    return this;
  }

  @Override
  public ReplicaAccessorBuilder setVisibleLength(long length) {
    visibleLength = length;
    return this;
  }

  @Override
  public ReplicaAccessorBuilder setConfiguration(Configuration configuration) {
    conf = configuration;
    return this;
  }

  @Override
  public ReplicaAccessorBuilder setBlockAccessToken(byte[] blockAccessToken) {
    token = blockAccessToken;
    return this;
  }

  @Override
  public ReplicaAccessor build() {
    Settings settings = SETTINGS.computeIfAbsent(conf, Settings::from);
    if (!Transports.readsByName(settings) || isStriped(block)) {
      return null;
    }
    try {
      BlockToken secret = token();
      String forbidden = secret == null ? DataProtection.againstReads(conf) : "";
      if (!forbidden.isEmpty()) {
        throw new NotServed(Fallback.SECURED_OTHER, forbidden);
      }
      if (shortCircuit()) {
        throw new NotServed(Fallback.SHORT_CIRCUIT, "");
      }
      return NamedReplicas.open(settings, pool, block, genstamp, visibleLength, secret);
    } catch (NotServed e) {
      TransferStats.get()
          .fallback(
              TransportNames.NDN,
              settings.transportAfter(TransportNames.NDN),
              e.reason(),
              pool + ":blk_" + block + "_" + genstamp,
              e.getMessage());
      return null;
    }
  }

  /**
   * Whether a block is one of an erasure-coded file. Stock code opens no other reader for one of
   * those that fails (StripeReader), as it does for any other block, but takes the DataNode for
   * lost: a router that dies would cost all of a group.
   */
  private static boolean isStriped(long block) {
    return block < 0;
  }

  /** The client gets a token with every block, an empty one where tokens are off: then null. */
  private BlockToken token() throws NotServed {
    if (token.length == 0) {
      return null;
    }
    Token<TokenIdentifier> parsed = new Token<>();
    try {
      parsed.readFields(new DataInputStream(new ByteArrayInputStream(token)));
    } catch (IOException e) {
      throw new NotServed(Fallback.SECURED_OTHER, "the block's token is malformed");
    }
    return parsed.getIdentifier().length == 0
        ? null
        : new BlockToken(parsed.getIdentifier(), parsed.getPassword());
  }

  /** Which replicas are local is not said here, so a client set up for local reads keeps them. */
  private boolean shortCircuit() {
    return allowShortCircuit
        && conf.getBoolean(
            HdfsClientConfigKeys.Read.ShortCircuit.KEY,
            HdfsClientConfigKeys.Read.ShortCircuit.DEFAULT);
  }
}

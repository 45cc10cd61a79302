package io.trunkline.hadoop.conf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.TrunklineTrustedChannelResolver;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class DataProtectionTest {
  private final Configuration conf = new Configuration(false);

  @Test
  void anOpenClusterMayUseNamedDataForAll() {
    conf.set("hadoop.security.authentication", " Simple ");
    conf.set("dfs.data.transfer.protection", " ");
    conf.set("dfs.encrypt.data.transfer", "false");
    assertEquals("", DataProtection.of(conf));
    assertEquals("", DataProtection.againstReads(conf));
    assertEquals("", DataProtection.againstServing(conf));
    assertEquals("", DataProtection.againstSecuredWrites(conf));
  }

  @ParameterizedTest
  @CsvSource({
    "dfs.block.access.token.enable, true",
    "dfs.encrypt.data.transfer, TRUE",
    "dfs.data.transfer.protection, privacy",
    "hadoop.security.authentication, kerberos",
  })
  void oneThatProtectsDataTransferReadsNothingByName(String key, String value) {
    conf.set(key, value);
    String reason = DataProtection.againstReads(conf);
    assertTrue(reason.startsWith(key + " is "), reason);
  }

  @Test
  void blockTokensAloneNeedNoResolver() {
    conf.setBoolean("dfs.block.access.token.enable", true);
    assertEquals("", DataProtection.againstServing(conf));
    assertEquals("", DataProtection.againstSecuredWrites(conf));
  }

  @ParameterizedTest
  @CsvSource({
    "dfs.encrypt.data.transfer, true",
    "dfs.data.transfer.protection, 'authentication,privacy'",
  })
  void aHandshakeOfStockCodeNeedsTheResolver(String key, String value) {
    conf.setBoolean("dfs.block.access.token.enable", true);
    conf.set("hadoop.security.authentication", "kerberos");
    conf.set(key, value);
    assertEquals("", DataProtection.againstServing(conf));
    String missing = DataProtection.againstSecuredWrites(conf);
    assertTrue(missing.startsWith(key + " is " + value), missing);
    assertTrue(missing.contains(DataProtection.RESOLVER), missing);
    conf.set("dfs.trustedchannel.resolver.class", "org.example.Other");
    assertFalse(DataProtection.againstSecuredWrites(conf).isEmpty());
    conf.setClass(
        "dfs.trustedchannel.resolver.class",
        TrunklineTrustedChannelResolver.class,
        TrunklineTrustedChannelResolver.class);
    assertEquals("", DataProtection.againstSecuredWrites(conf));
  }

  @ParameterizedTest
  @CsvSource({
    "dfs.encrypt.data.transfer, true",
    "dfs.data.transfer.protection, integrity",
    "hadoop.security.authentication, kerberos",
  })
  void withoutTokensNothingIsServed(String key, String value) {
    conf.set(key, value);
    String reason = DataProtection.againstServing(conf);
    assertTrue(reason.startsWith(key + " is "), reason);
    assertTrue(reason.contains("dfs.block.access.token.enable"), reason);
  }
}

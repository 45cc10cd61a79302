package io.trunkline.hadoop.conf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class DataProtectionTest {
  @Test
  void anOpenClusterMayUseNamedData() {
    Configuration conf = new Configuration(false);
    assertEquals("", DataProtection.againstNamedData(conf));
    conf.set("hadoop.security.authentication", " Simple ");
    conf.set("dfs.data.transfer.protection", " ");
    conf.set("dfs.encrypt.data.transfer", "false");
    assertEquals("", DataProtection.againstNamedData(conf));
  }

  @ParameterizedTest
  @CsvSource({
    "dfs.block.access.token.enable, true",
    "dfs.encrypt.data.transfer, TRUE",
    "dfs.data.transfer.protection, privacy",
    "hadoop.security.authentication, kerberos",
  })
  void oneThatProtectsDataTransferMayNot(String key, String value) {
    Configuration conf = new Configuration(false);
    conf.set(key, value);
    String reason = DataProtection.againstNamedData(conf);
    assertTrue(reason.startsWith(key + " is "), reason);
  }
}

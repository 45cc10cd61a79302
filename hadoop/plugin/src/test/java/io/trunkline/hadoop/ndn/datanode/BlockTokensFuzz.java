package io.trunkline.hadoop.ndn.datanode;

import com.code_intelligence.jazzer.junit.FuzzTest;
import io.trunkline.hadoop.Fuzzing;

/** Anything as the identifier of a block token, in either of its two forms. */
class BlockTokensFuzz {
  @FuzzTest
  void identifier(byte[] bytes) {
    Fuzzing.decode(bytes.length, 96, () -> BlockTokens.identifier(bytes));
  }
}

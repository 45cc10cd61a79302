package io.trunkline.hadoop.ndn;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class NamesTest {
  @Test
  void namesAreEscaped() {
    Names names = new Names("/org/hadoop");
    assertEquals("/org/hadoop/blocks/BP-1%2Fx/7/v=9", names.version("BP-1/x", 7, 9));
    assertEquals("/org/hadoop/blocks/BP-1/7/32=metadata", names.metadata("BP-1", 7));
    assertEquals("/org/hadoop/datanodes/%3A%3A1/80", names.dataNode("::1", 80));
    assertEquals(
        "/a/v=1/32=stream/%FF%00%00%00%00%00%00%2E", Names.stream("/a/v=1", 0xFF0000000000002EL));
  }
}

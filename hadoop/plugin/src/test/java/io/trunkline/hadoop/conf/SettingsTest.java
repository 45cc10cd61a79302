package io.trunkline.hadoop.conf;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.HashSet;
import java.util.OptionalInt;
import java.util.Set;
import org.apache.hadoop.conf.Configuration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SettingsTest {
  private static Settings with(String key, String value) {
    Configuration conf = new Configuration(false);
    conf.set(key, value);
    return Settings.from(conf);
  }

  @Test
  void defaultsAreValid() {
    Settings settings = Settings.from(new Configuration(false));
    assertTrue(settings.ndn());
    assertEquals("/hadoop", settings.root());
    assertEquals(64512, settings.segmentBytes());
    assertNull(settings.localAddress());
    assertEquals(settings, Settings.from(new Configuration(false)));
  }

  @Test
  void valuesAreRead() {
    assertFalse(with("trunkline.transport", "tcp").ndn());
    assertEquals("/org/example", with("trunkline.ndn.root", "ndn:/org/example/").root());
    assertEquals(
        "127.0.0.3",
        with("trunkline.local.address", " 127.0.0.3 ").localAddress().getHostAddress());
    assertEquals(
        9999, with("trunkline.datanode.address", "[::1]:9999").dataNodeAddress().getPort());
    assertEquals(
        2, with("trunkline.ndn.listen", "udp://0.0.0.0:6363, unix:///a/b").listen().size());
    assertNotEquals(with("trunkline.ndn.root", "/a"), with("trunkline.ndn.root", "/b"));
  }

  @Test
  void theControllerIsAUrlWhereBlocksAreMirrored() {
    Configuration conf = new Configuration(false);
    conf.set("trunkline.transport", "ucx,ndn,mirror,tcp");
    conf.set("trunkline.mirror.controller", "https://controller.example:8181/trunkline/");
    Settings settings = Settings.from(conf);
    assertEquals(
        "https://controller.example:8181/trunkline", settings.mirror().controller().toString());
    assertEquals(20, settings.mirror().waitMs());
    assertEquals("mirror", settings.transportAfter("ndn"));
    assertNull(with("trunkline.transport", "tcp").mirror().controller());
  }

  @Test
  void nothingIsMarkedUnlessWanted() {
    Settings off = with("trunkline.dscp.replication", "LE");
    for (TrafficCategory category : TrafficCategory.values()) {
      assertEquals(OptionalInt.empty(), off.dscp(category));
    }
  }

  @ParameterizedTest
  @CsvSource({"46,46", "0,0", "CS1,8", "af43,38", "AF11,10", "EF,46", "LE,1", "VOICE-ADMIT,44"})
  void codePointsHaveNumbersAndNames(String value, int point) {
    Configuration conf = new Configuration(false);
    conf.set("trunkline.dscp", "on");
    conf.set("trunkline.dscp.split", value);
    assertEquals(OptionalInt.of(point), Settings.from(conf).dscp(TrafficCategory.SPLIT));
  }

  @Test
  void byDefaultNoTwoCategoriesShareAMark() {
    Settings on = with("trunkline.dscp", "on");
    Set<Integer> marks = new HashSet<>();
    for (TrafficCategory category : TrafficCategory.values()) {
      assertTrue(marks.add(on.dscp(category).orElseThrow()), category.text());
    }
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "trunkline.ndn.facce | tcp://a:1 | did you mean trunkline.ndn.face?",
        "trunkline.nonsense | 1 | did you mean",
        "trunkline.ndn.face | router:6363 | write it as tcp://",
        "trunkline.ndn.face | http://router/ | no face has the scheme http",
        "trunkline.ndn.face | tcp://a b | bad URI",
        "trunkline.ndn.face | tls://router.rack1 | have it connect by tls://",
        "trunkline.ndn.face | unix:// | bad URI",
        "trunkline.ndn.listen | tcp:// | bad URI",
        "trunkline.ndn.root | hadoop | not an NDN name",
        "trunkline.ndn.root | / | not an NDN name",
        "trunkline.ndn.root | /a//b | empty component",
        "trunkline.ndn.root | /a/.. | not an NDN name",
        "trunkline.ndn.root | /a/%zz | not an NDN name",
        "trunkline.ndn.segment.bytes | 1000 | multiple of 512",
        "trunkline.ndn.segment.bytes | 1048576 | out of range",
        "trunkline.ndn.window.segments | many | no whole number",
        "trunkline.ndn.window.segments | 0 | out of range",
        "trunkline.transport | tcp,ndn | tcp must stand at the end",
        "trunkline.transport | ndn | tcp must stand at the end",
        "trunkline.transport | rdma,tcp | no transport is named rdma",
        "trunkline.transport | ucx,ucx,tcp | stands there twice",
        "trunkline.transport | mirror,ndn,tcp | put it right before tcp",
        "trunkline.transport | mirror,tcp | trunkline.mirror.controller",
        "trunkline.mirror.controller | 192.0.2.1:8181 | no URL of a server",
        "trunkline.mirror.controller | ftp://192.0.2.1/ | no URL of a server",
        "trunkline.mirror.controller | http://:8181 | no URL of a server",
        "trunkline.mirror.controller | http:// | no URL of a server",
        "trunkline.mirror.controller | http://a:99999 | no URL of a server",
        "trunkline.mirror.controller | http://u:p@a:1 | no URL of a server",
        "trunkline.mirror.controller | http://a/?x=1 | no URL of a server",
        "trunkline.mirror.token.file | token | absolute path",
        "trunkline.mirror.wait.ms | 0 | out of range",
        "trunkline.ucx.workers | 0 | out of range",
        "trunkline.ucx.polling | always | use wait or busy",
        "trunkline.ucx.tls | rc tcp | no list of transports",
        "trunkline.ucx.pool.bytes | 1024 | out of range",
        "trunkline.ndn.verify | none | use checksums or digest",
        "trunkline.local.address | localhost | no IP address",
        "trunkline.datanode.address | 9866 | not address:port",
        "trunkline.datanode.address | 1.2.3.4:99999 | not address:port",
        "trunkline.stats.file | stats.json | absolute path",
        "trunkline.dscp | true | use on or off",
        "trunkline.dscp.client-write | 64 | no code point",
        "trunkline.dscp.client-write | AF44 | no code point",
        "trunkline.dscp.client-write | 0x12 | no code point",
        "trunkline.dscp.shuffle | CS1 | no such setting",
      })
  void wrongOnesAreRefusedWithNameAndFix(String key, String value, String said) {
    SettingsException e = assertThrows(SettingsException.class, () -> with(key, value));
    assertTrue(e.getMessage().contains(key), e.getMessage());
    assertTrue(e.getMessage().contains(said), e.getMessage());
  }

  @Test
  void pageNamesEverySetting() {
    String page = SettingsPage.markdown();
    for (Setting setting : Setting.values()) {
      assertTrue(page.contains('`' + setting.key() + '`'), setting.key());
    }
  }
}

package io.trunkline.hadoop.mirror;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.trunkline.hadoop.conf.JsonText;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class EndsTest {
  @ParameterizedTest
  @CsvSource({
    "/192.0.2.1:9866, 192.0.2.1, 9866",
    "dn1.example/192.0.2.1:9866, 192.0.2.1, 9866",
    "192.0.2.1:1, 192.0.2.1, 1",
    "/[2001:db8:0:0:0:0:0:1]:9866, 2001:db8::1, 9866",
    "host/[fe80:0:0:0:0:0:0:1%1]:9866, fe80::1%1, 9866",
  })
  void anEndIsReadAsAPeerTellsIt(String text, String address, int port) throws IOException {
    InetSocketAddress expected = new InetSocketAddress(InetAddress.getByName(address), port);
    assertEquals(expected, Ends.parse(text));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "unix:/var/run/dn_socket",
        "host/<unresolved>:9866",
        "localhost:9866",
        "/192.0.2.1",
        "/192.0.2.1:port",
        "/192.0.2.1:65536",
        "/192.0.2.999:1",
        "/[2001:db8:zz::1]:1"
      })
  void whatIsNoAddressIsRefusedWithoutLookingItUp(String text) {
    assertThrows(IOException.class, () -> Ends.parse(text));
  }

  @Test
  void packetsCarryNoScope() throws IOException {
    Ends ends = new Ends(Ends.parse("/[fe80::1%1]:5"), Ends.parse("/[2001:db8::2]:6"));
    JsonText json = new JsonText();
    ends.write(json);
    assertEquals(
        "{\"source\":{\"address\":\"fe80:0:0:0:0:0:0:1\",\"port\":5},"
            + "\"destination\":{\"address\":\"2001:db8:0:0:0:0:0:2\",\"port\":6}}",
        json.end());
  }
}

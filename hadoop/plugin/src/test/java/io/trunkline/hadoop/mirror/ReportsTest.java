package io.trunkline.hadoop.mirror;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotSame;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.trunkline.hadoop.StockBytes;
import io.trunkline.hadoop.conf.Settings;
import io.trunkline.hadoop.mirror.TestController.Reply;
import io.trunkline.hadoop.mirror.TestController.Told;
import io.trunkline.hadoop.stats.TransferStats;
import io.trunkline.hadoop.stats.TransferStats.Counter;
import io.trunkline.hadoop.tap.BytesTap;
import io.trunkline.hadoop.tap.PassThrough;
import io.trunkline.hadoop.tap.TapListener;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.channels.Channels;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.KeyStore;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.protocol.datatransfer.BlockConstructionStage;
import org.apache.hadoop.security.token.Token;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What a DataNode tells the controller of a write that it passes on, and what follows. */
@Timeout(120)
class ReportsTest {
  private static final byte[] SASL = {(byte) 0xDE, (byte) 0xAD, (byte) 0xBE, (byte) 0xEF, 1, 2};

  private final Map<Counter, Long> before = new EnumMap<>(Counter.class);
  private final List<BytesTap> taps = new ArrayList<>();
  private TestController controller;

  @BeforeEach
  void start() throws IOException {
    controller = new TestController();
    for (Counter counter : Counter.values()) {
      before.put(counter, TransferStats.get().value(counter));
    }
  }

  @AfterEach
  void stop() throws InterruptedException {
    for (BytesTap tap : taps) {
      tap.close();
    }
    TestController.await(() -> number("mirror_open") == 0, "all reports have ended");
    controller.close();
  }

  private long count(Counter counter) {
    return TransferStats.get().value(counter) - before.get(counter);
  }

  private void awaitCount(Counter counter, long count) throws InterruptedException {
    TestController.await(() -> count(counter) >= count, counter);
    assertEquals(count, count(counter));
  }

  private static Settings settings(String url, String... more) {
    Configuration conf = new Configuration(false);
    conf.set("trunkline.transport", "mirror,tcp");
    conf.set("trunkline.mirror.controller", url);
    for (int i = 0; i < more.length; i += 2) {
      conf.set(more[i], more[i + 1]);
    }
    return Settings.from(conf);
  }

  private Reports reports() throws IOException {
    return Reports.of(settings("http://" + controller.address()));
  }

  private static Upstream upstream() throws IOException {
    return new Upstream(
        new Ends(Ends.parse("/192.0.2.1:40000"), Ends.parse("/192.0.2.2:9866")),
        InputStream.nullInputStream());
  }

  private TapListener listener() throws IOException {
    return new MirrorWrites(upstream(), reports());
  }

  /** The header that a DataNode sends which has so many after it, and the connection it is on. */
  private static byte[] header(int dataNodes, int after, BlockConstructionStage stage) {
    return header(dataNodes, after, stage, "client", 0);
  }

  private static byte[] header(
      int dataNodes, int after, BlockConstructionStage stage, String client, long genstamp) {
    return StockBytes.writeHeader(
        dataNodes, after, stage, client, new Token<>(), 128L << 20, genstamp);
  }

  private static byte[] create(int dataNodes, int after) {
    return header(dataNodes, after, BlockConstructionStage.PIPELINE_SETUP_CREATE);
  }

  /** Stock code writes; the connection stays open. */
  private BytesTap write(TapListener listener, byte[] stock) throws IOException {
    ByteArrayOutputStream sent = new ByteArrayOutputStream();
    BytesTap tap = new BytesTap(listener, Channels.newChannel(sent));
    taps.add(tap);
    tap.write(stock);
    assertArrayEquals(stock, sent.toByteArray(), "at once");
    assertTrue(tap.passesAll());
    byte[] packet = StockBytes.packet(0, 0, false, StockBytes.random(new Random(1), 70_000));
    tap.write(packet);
    assertEquals(stock.length + packet.length, sent.size());
    assertArrayEquals(packet, tap.answered(packet), "answers come as they are");
    return tap;
  }

  /** Different ones; what is reported may be reported again at any time. */
  private void awaitReports(int count) throws InterruptedException {
    TestController.await(() -> controller.reports().size() >= count, controller.told());
    assertEquals(count, controller.reports().size());
  }

  // What is reported.

  @Test
  void theFirstDataNodeReportsTheClientsConnectionAndItsOwn() throws Exception {
    write(listener(), create(3, 2));
    awaitReports(2);
    List<Told> told = controller.reports();
    assertEquals(
        List.of("1: 192.0.2.1:40000 > 192.0.2.2:9866", "2: 127.0.0.1:1 > 127.0.0.1:2"),
        told.stream().map(Told::hop).sorted().toList());
    for (Told one : told) {
      assertEquals("/v1/mirrors", one.path());
      assertEquals(StockBytes.POOL + "~" + StockBytes.BLOCK + "~" + StockBytes.GENSTAMP, one.id());
      assertEquals("3", one.fields().get("replicas"));
      assertEquals("client", one.fields().get("client"));
      assertEquals("PIPELINE_SETUP_CREATE", one.fields().get("stage"));
      assertEquals("0", one.fields().get("wait_ms"), "others report after it");
    }
    assertEquals(2, count(Counter.MIRROR_REPORTED));
    assertEquals(0, count(Counter.MIRROR_LATE));
  }

  @Test
  void thoseAfterItReportTheirOwnAndTheLastOfThemWaits() throws Exception {
    write(listener(), create(4, 2));
    awaitReports(1);
    assertEquals("3: 127.0.0.1:1 > 127.0.0.1:2", controller.reports().get(0).hop());
    assertEquals("0", controller.reports().get(0).fields().get("wait_ms"));
    write(listener(), create(4, 1));
    awaitReports(2);
    assertEquals("4: 127.0.0.1:1 > 127.0.0.1:2", controller.reports().get(1).hop());
    assertEquals("20", controller.reports().get(1).fields().get("wait_ms"));
  }

  @Test
  void ofTwoReplicasTheFirstDataNodeReportsAll() throws Exception {
    write(listener(), create(2, 1));
    awaitCount(Counter.MIRROR_ARMED, 1);
    assertEquals(
        List.of("0", "20"),
        controller.reports().stream().map(one -> one.fields().get("wait_ms")).sorted().toList());
  }

  @ParameterizedTest
  @EnumSource(
      value = BlockConstructionStage.class,
      names = {
        "PIPELINE_SETUP_APPEND",
        "PIPELINE_SETUP_APPEND_RECOVERY",
        "PIPELINE_SETUP_STREAMING_RECOVERY"
      })
  void afterAnAppendOrARecoveryTheGenerationIsTheNewOne(BlockConstructionStage stage)
      throws Exception {
    write(listener(), header(3, 1, stage, "client", 2002));
    awaitReports(1);
    assertEquals("2002", controller.reports().get(0).fields().get("generation"));
    assertEquals(stage.name(), controller.reports().get(0).fields().get("stage"));
  }

  /** A report of another write shows that none of these came before it. */
  @Test
  void whatIsNoWriteOfAClientToSeveralReplicasIsNotReported() throws Exception {
    BlockConstructionStage stage = BlockConstructionStage.PIPELINE_SETUP_CREATE;
    write(listener(), header(3, 2, stage, "", 0));
    write(listener(), header(3, 2, BlockConstructionStage.TRANSFER_RBW));
    write(listener(), header(3, 2, BlockConstructionStage.TRANSFER_FINALIZED));
    write(listener(), header(3, 2, BlockConstructionStage.PIPELINE_CLOSE_RECOVERY));
    write(listener(), header(3, 2, stage, "x".repeat(256), 0));
    write(listener(), create(1, 1));
    write(listener(), create(3, 3));
    write(listener(), create(1, 3));
    write(listener(), SASL);
    write(listener(), new byte[] {0, 28, 81, 5, 1, 2, 3, 4, 5});
    write(listener(), create(3, 1));
    awaitReports(1);
    assertEquals(1, count(Counter.MIRROR_REPORTED));
  }

  // What becomes of it.

  @Test
  void whatIsArmedIsCountedByWhoWaitedAndEndedWithItsConnection() throws Exception {
    BytesTap first = write(listener(), create(3, 2));
    awaitReports(2);
    BytesTap second = write(listener(), create(3, 1));
    awaitCount(Counter.MIRROR_ARMED, 1);
    String id = controller.reports().get(0).id();
    assertEquals(List.of(), controller.ended());
    first.close();
    TestController.await(() -> controller.ended().equals(List.of(id)), controller.told());
    second.close();
    TestController.await(() -> controller.ended().equals(List.of(id, id)), controller.told());
    assertEquals(1, count(Counter.MIRROR_ARMED));
    assertEquals(0, count(Counter.MIRROR_LATE) + count(Counter.MIRROR_REFUSED));
    assertEquals(0, count(Counter.MIRROR_UNREACHABLE), "404 for what has ended is no failure");
  }

  /** Copies help the rest of a block whenever they begin. */
  @Test
  void whatIsNotArmedInTimeIsCountedOnceAndStays() throws Exception {
    controller.lease(0.3);
    controller.replies(
        one ->
            one.method().equals("POST") ? controller.state(one, "arming") : controller.usual(one));
    BytesTap tap = write(listener(), create(3, 1));
    awaitCount(Counter.MIRROR_LATE, 1);
    TestController.await(() -> controller.told().size() >= 3, "renewed");
    assertEquals(List.of(), controller.ended());
    assertEquals(1, count(Counter.MIRROR_LATE));
    assertEquals(0, count(Counter.MIRROR_ARMED));
    tap.close();
    TestController.await(() -> controller.ended().size() == 1, controller.told());
  }

  /** The others may be slow to report theirs, which says nothing of the controller. */
  @Test
  void theTimeBeginsWhenAllConnectionsAreKnown() throws Exception {
    write(listener(), create(3, 1));
    TestController.await(() -> controller.told().size() >= 2, "it asks again");
    assertEquals(List.of(), controller.ended());
    write(listener(), create(3, 2));
    awaitCount(Counter.MIRROR_ARMED, 1);
    assertEquals(List.of(), controller.ended());
    assertEquals(0, count(Counter.MIRROR_LATE));
  }

  /** Its own is told when the client's has been, or the controller would wait for what comes. */
  @Test
  void theFirstDataNodeReportsTheClientsBeforeItWaits() throws Exception {
    write(listener(), create(2, 1));
    awaitCount(Counter.MIRROR_ARMED, 1);
    assertTrue(TransferStats.get().json().contains("\"mirror_held_us_any\":"));
    List<Told> posted = controller.reports();
    assertEquals(List.of("1", "2"), posted.stream().map(o -> o.fields().get("position")).toList());
    assertEquals("0", posted.get(0).fields().get("wait_ms"));
    assertNotEquals("0", posted.get(1).fields().get("wait_ms"));
  }

  private static boolean await(CountDownLatch latch) {
    try {
      return latch.await(20, TimeUnit.SECONDS);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }

  /** What could not be said while the controller failed is said when it is well again. */
  @Test
  void endsThatCouldNotBeToldAreToldWhenTheControllerIsBack() throws Exception {
    List<BytesTap> open = new ArrayList<>();
    BlockConstructionStage stage = BlockConstructionStage.PIPELINE_SETUP_APPEND;
    for (int generation = 2001; generation <= 2003; generation++) {
      open.add(write(listener(), header(2, 1, stage, "client", generation)));
    }
    awaitCount(Counter.MIRROR_ARMED, 3);
    controller.replies(one -> new Reply(500, ""));
    for (BytesTap tap : open) {
      tap.close();
    }
    TestController.await(() -> !controller.ended().isEmpty(), controller.told());
    TestController.await(() -> number("mirror_open") == 0, "all reports have ended");
    assertEquals(3, controller.live().size());
    controller.replies(controller::usual);
    TestController.await(() -> controller.live().isEmpty(), controller.told());
  }

  private static long number(String name) {
    Matcher found = Pattern.compile("\"" + name + "\":(\\d+)").matcher(TransferStats.get().json());
    return found.find() ? Long.parseLong(found.group(1)) : 0;
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "409 | {\"detail\":\"one replica\",\"remedy\":\"go on\"} | http_409 | false",
        "409 | {\"detail\":\"one replica\",\"why\":\"one_replica\"} | one_replica | false",
        "422 | not JSON | http_422 | false",
        "401 | {\"detail\":\"a bearer token is required\"} | http_401 | true",
        "404 | {} | http_404 | true",
      })
  void whatTheControllerRefusesIsCountedByItsReason(
      int status, String body, String reason, boolean leftAlone) throws Exception {
    long known = number("mirror_refused_" + reason);
    controller.replies(one -> new Reply(status, body));
    write(listener(), create(3, 1));
    awaitCount(Counter.MIRROR_REFUSED, 1);
    assertEquals(known + 1, number("mirror_refused_" + reason));
    assertEquals(0, count(Counter.MIRROR_UNREACHABLE));
    write(listener(), create(3, 1));
    if (leftAlone) {
      awaitCount(Counter.MIRROR_UNREACHABLE, 1);
      assertEquals(1, controller.reports().size(), "not asked in vain each time");
    } else {
      awaitCount(Counter.MIRROR_REFUSED, 2);
    }
  }

  @Test
  void eachConnectionIsRefusedForItsOwnReason() throws Exception {
    List<String> reasons = List.of("outdated", "max_pipelines_per_host");
    List<Long> known = reasons.stream().map(why -> number("mirror_refused_" + why)).toList();
    controller.replies(
        one -> {
          int position = Integer.parseInt(one.fields().get("position"));
          return new Reply(409, "{\"why\":\"" + reasons.get(position - 1) + "\"}");
        });
    write(listener(), create(3, 2));
    awaitCount(Counter.MIRROR_REFUSED, 2);
    for (int i = 0; i < 2; i++) {
      assertEquals(known.get(i) + 1, number("mirror_refused_" + reasons.get(i)));
    }
  }

  /** What was taken may be refused when it is renewed. */
  @Test
  void aLaterRefusalIsCountedOnceForEachReason() throws Exception {
    long known = number("mirror_refused_outdated");
    controller.lease(0.3);
    write(listener(), create(3, 2));
    awaitReports(2);
    controller.replies(one -> new Reply(409, "{\"why\":\"outdated\"}"));
    awaitCount(Counter.MIRROR_REFUSED, 1);
    int told = controller.told().size();
    TestController.await(() -> controller.told().size() >= told + 4, "it goes on");
    assertEquals(1, count(Counter.MIRROR_REFUSED));
    assertEquals(known + 1, number("mirror_refused_outdated"));
  }

  /** It may be armed later, when an agent or a host has come: it is renewed, and not ended. */
  @Test
  void aPipelineThatIsRefusedIsToldOfAgain() throws Exception {
    controller.lease(0.3);
    controller.replies(one -> controller.state(one, "refused"));
    long known = number("mirror_refused_no_path");
    write(listener(), create(3, 1));
    TestController.await(() -> controller.told().size() >= 3, "it is told again");
    assertEquals(1, count(Counter.MIRROR_REFUSED));
    assertEquals(known + 1, number("mirror_refused_no_path"));
    assertEquals(List.of(), controller.ended());
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "<html>it works</html>",
        "[]",
        "{\"id\":\"a~1~1\",\"state\":\"armed\"}",
        "{\"id\":\"a~1~1\",\"state\":\"armed\",\"lease_s\":0}",
        "{\"id\":\"a~1~1\",\"state\":\"armed\",\"lease_s\":1e9}",
        "{\"id\":\"a~1~1\",\"state\":\"perhaps\",\"lease_s\":60}",
        "{\"id\":\"../../v1/policy\",\"state\":\"armed\",\"lease_s\":60}",
        "{\"id\":null,\"state\":\"armed\",\"lease_s\":60"
      })
  void nonsenseIsNoAnswer(String body) throws Exception {
    controller.replies(one -> new Reply(200, body));
    write(listener(), create(3, 1));
    awaitCount(Counter.MIRROR_UNREACHABLE, 1);
    assertEquals(0, count(Counter.MIRROR_ARMED) + count(Counter.MIRROR_REFUSED));
    assertEquals(List.of(), controller.ended());
  }

  @ParameterizedTest
  @ValueSource(ints = {500, 302})
  void aServerThatFailsIsUnreachable(int status) throws Exception {
    controller.replies(one -> new Reply(status, ""));
    write(listener(), create(3, 1));
    awaitCount(Counter.MIRROR_UNREACHABLE, 1);
    assertEquals(0, count(Counter.MIRROR_REFUSED));
  }

  @Test
  void anAnswerWithoutEndIsGivenUp() throws Exception {
    controller.replies(one -> new Reply(200, "x".repeat(1 << 20)));
    write(listener(), create(3, 1));
    awaitCount(Counter.MIRROR_UNREACHABLE, 1);
  }

  @Test
  void aControllerThatIsAwayIsLeftAloneForAWhile() throws Exception {
    int port;
    try (ServerSocket gone = new ServerSocket(0)) {
      port = gone.getLocalPort();
    }
    TapListener listener =
        new MirrorWrites(upstream(), Reports.of(settings("http://127.0.0.1:" + port)));
    write(listener, create(3, 1));
    awaitCount(Counter.MIRROR_UNREACHABLE, 1);
    try (ServerSocket back = new ServerSocket()) {
      back.setReuseAddress(true);
      back.bind(new InetSocketAddress("127.0.0.1", port));
      write(listener, create(3, 1));
      awaitCount(Counter.MIRROR_UNREACHABLE, 2);
      back.setSoTimeout(1);
      assertThrows(SocketTimeoutException.class, back::accept, "nobody has connected");
    }
  }

  /** It takes the connection and what is sent there, and says nothing. */
  @Test
  void aControllerThatDoesNotAnswerHoldsNoWrite() throws Exception {
    try (ServerSocket silent = new ServerSocket(0)) {
      TapListener listener =
          new MirrorWrites(
              upstream(), Reports.of(settings("http://127.0.0.1:" + silent.getLocalPort())));
      write(listener, create(3, 1));
      write(listener, create(3, 2));
      TestController.await(() -> count(Counter.MIRROR_UNREACHABLE) == 2, "both are given up");
    }
  }

  /** Each byte comes in time, and the last one never. */
  @ParameterizedTest
  @ValueSource(strings = {"", "Content-Length: 60000\r\n\r\n"})
  void anAnswerThatNeverEndsIsGivenUp(String head) throws Exception {
    try (ServerSocket slow = new ServerSocket(0)) {
      Thread server = new Thread(() -> drip(slow, head));
      server.setDaemon(true);
      server.start();
      TapListener listener =
          new MirrorWrites(
              upstream(), Reports.of(settings("http://127.0.0.1:" + slow.getLocalPort())));
      write(listener, create(3, 1));
      awaitCount(Counter.MIRROR_UNREACHABLE, 1);
    }
  }

  private static void drip(ServerSocket at, String head) {
    try (Socket client = at.accept()) {
      OutputStream out = client.getOutputStream();
      out.write(("HTTP/1.1 200 OK\r\n" + head).getBytes(StandardCharsets.ISO_8859_1));
      while (true) {
        out.write((head.isEmpty() ? "X: y\r\n" : " ").getBytes(StandardCharsets.ISO_8859_1));
        out.flush();
        Thread.sleep(50);
      }
    } catch (IOException e) {
      // It is given up.
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  // As long as the connection lives.

  @Test
  void theLeaseIsRenewedUntilTheConnectionCloses() throws Exception {
    controller.lease(0.3);
    BytesTap tap = write(listener(), create(2, 1));
    TestController.await(() -> controller.told().size() >= 2 * 4, "it is told again");
    assertEquals(1, count(Counter.MIRROR_ARMED), "counted once");
    assertEquals(2, count(Counter.MIRROR_REPORTED), "counted once");
    assertEquals(List.of(), controller.ended());
    tap.close();
    TestController.await(() -> controller.ended().size() == 1, controller.told());
    assertEquals(Map.of(), controller.live());
  }

  @Test
  void aPipelineThatNobodyCompletesIsGivenUpAfterALease() throws Exception {
    controller.lease(0.3);
    write(listener(), create(3, 2));
    TestController.await(() -> !controller.ended().isEmpty(), controller.told());
    assertTrue(controller.told().size() >= 2 * 2, controller.told().toString());
    assertEquals(1, count(Counter.MIRROR_INCOMPLETE));
    assertEquals(0, count(Counter.MIRROR_LATE), "who waits for it counts that");
  }

  /** A controller that has started anew knows of no pipeline until all have told it again. */
  @Test
  void aPipelineIsToldOfAgainToAControllerThatHasForgottenIt() throws Exception {
    controller.lease(3);
    write(listener(), create(3, 2));
    awaitReports(2);
    write(listener(), create(3, 1));
    awaitCount(Counter.MIRROR_ARMED, 1);
    controller.forget();
    Set<String> all = Set.of("1", "2", "3");
    TestController.await(() -> controller.live().containsValue(all), controller.told());
    assertEquals(List.of(), controller.ended());
    assertEquals(0, count(Counter.MIRROR_LATE));
  }

  // What a slow controller costs.

  /** Holds all answers until it is let go, with every thread waiting for one. */
  private CountDownLatch held(int reports) throws Exception {
    CountDownLatch latch = new CountDownLatch(1);
    controller.replies(
        one -> {
          await(latch);
          return controller.usual(one);
        });
    for (int i = 0; i < reports; i++) {
      write(listener(), create(3, 1));
    }
    TestController.await(() -> controller.told().size() == reports, controller.told());
    return latch;
  }

  @Test
  void whatWaitsIsBoundedAndWhatIsMoreIsCounted() throws Exception {
    CountDownLatch latch = held(4);
    Reports reports = reports();
    List<Hop> hops =
        List.of(new Hop("pool", 1, 1, 3, "client", "PIPELINE_SETUP_CREATE", 3, upstream().ends()));
    List<PassThrough> taken = new ArrayList<>();
    for (int i = 0; i < Reports.MAX_WAITING; i++) {
      taken.add(reports.take(hops));
      assertNotSame(PassThrough.INSTANCE, taken.get(i));
    }
    for (int i = 0; i < 10; i++) {
      assertSame(PassThrough.INSTANCE, reports.take(hops));
    }
    assertEquals(10, count(Counter.MIRROR_DROPPED));
    assertEquals(4 + Reports.MAX_WAITING + 10, count(Counter.MIRROR_REPORTED));
    taken.forEach(PassThrough::close);
    latch.countDown();
    TestController.await(() -> number("mirror_open") <= 4, "there is room for others again");
    assertNotSame(PassThrough.INSTANCE, closed(reports.take(hops)));
  }

  private static PassThrough closed(PassThrough report) {
    report.close();
    return report;
  }

  @Test
  void aConnectionThatClosesBeforeItsTurnIsNeverTold() throws Exception {
    CountDownLatch latch = held(4);
    BlockConstructionStage stage = BlockConstructionStage.PIPELINE_SETUP_CREATE;
    write(listener(), header(3, 1, stage, "short", 0)).close();
    latch.countDown();
    write(listener(), header(3, 1, stage, "after", 0));
    TestController.await(() -> clients().contains("after"), controller.told());
    assertEquals(Set.of("client", "after"), clients());
  }

  private Set<String> clients() {
    return controller.told().stream()
        .filter(one -> one.method().equals("POST"))
        .map(one -> one.fields().get("client"))
        .collect(Collectors.toSet());
  }

  /** A DataNode counts the threads of its group as transfers, and waits for them as it stops. */
  @Test
  void noThreadJoinsTheGroupOfWhoWrites() throws Exception {
    ThreadGroup dataNode = new ThreadGroup("dataXceiverServer");
    TapListener listener = listener();
    List<Throwable> failures = new CopyOnWriteArrayList<>();
    Thread xceiver =
        new Thread(
            dataNode,
            () -> {
              try {
                write(listener, create(2, 1));
              } catch (IOException | AssertionError e) {
                failures.add(e);
              }
            });
    xceiver.start();
    xceiver.join();
    awaitCount(Counter.MIRROR_ARMED, 1);
    assertEquals(List.of(), failures);
    assertEquals(0, dataNode.activeCount());
  }

  // Who asks, and whom.

  @Test
  void byTlsWithATokenAndOurOwnCertificates(@TempDir Path directory) throws Exception {
    Path store = directory.resolve("store.p12");
    Path pem = directory.resolve("ca.pem");
    String keytool = Path.of(System.getProperty("java.home"), "bin", "keytool").toString();
    run(
        keytool,
        "-genkeypair",
        "-alias",
        "a",
        "-keyalg",
        "EC",
        "-dname",
        "CN=controller",
        "-ext",
        "san=ip:127.0.0.1",
        "-storepass",
        "changeit",
        "-keystore",
        store.toString());
    run(
        keytool,
        "-exportcert",
        "-rfc",
        "-alias",
        "a",
        "-storepass",
        "changeit",
        "-keystore",
        store.toString(),
        "-file",
        pem.toString());
    Path token = Files.writeString(directory.resolve("token"), "0123456789abcdef\n");
    Files.setPosixFilePermissions(token, PosixFilePermissions.fromString("rw-------"));
    KeyStore keys = KeyStore.getInstance(store.toFile(), "changeit".toCharArray());
    KeyManagerFactory managers =
        KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
    managers.init(keys, "changeit".toCharArray());
    SSLContext context = SSLContext.getInstance("TLS");
    context.init(managers.getKeyManagers(), null, null);
    try (TestController secure = new TestController(context)) {
      String url = "https://" + secure.address();
      Settings ours =
          settings(
              url,
              "trunkline.mirror.ca.file",
              pem.toString(),
              "trunkline.mirror.token.file",
              token.toString());
      write(new MirrorWrites(upstream(), Reports.of(ours)), create(2, 1));
      awaitCount(Counter.MIRROR_ARMED, 1);
      for (Told one : secure.told()) {
        assertEquals("Bearer 0123456789abcdef", one.authorization());
      }
      write(new MirrorWrites(upstream(), Reports.of(settings(url))), create(2, 1));
      awaitCount(Counter.MIRROR_UNREACHABLE, 1);
      for (Told one : secure.told()) {
        assertEquals("Bearer 0123456789abcdef", one.authorization(), "no stranger has told it");
      }
    }
  }

  private static void run(String... command) throws Exception {
    Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
    String said = new String(process.getInputStream().readAllBytes());
    assertEquals(0, process.waitFor(), said);
  }
}

package io.trunkline.hadoop.mirror;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import com.sun.net.httpserver.HttpsConfigurator;
import com.sun.net.httpserver.HttpsServer;
import io.trunkline.hadoop.conf.Json;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Function;
import javax.net.ssl.SSLContext;

/** A server that answers as a controller does to reports of pipelines, and writes them down. */
public final class TestController implements AutoCloseable {
  /**
   * What it was told.
   *
   * @param method POST or DELETE
   * @param path where
   * @param authorization the header, null for none
   * @param fields of the body, by name
   */
  public record Told(String method, String path, String authorization, Map<String, String> fields) {
    /** Of a connection: {@code position: source > destination}. */
    public String hop() {
      return fields.get("position") + ": " + end("source") + " > " + end("destination");
    }

    /** An end of the connection as {@code address:port}. */
    public String end(String name) {
      return fields.get(name + ".address") + ":" + fields.get(name + ".port");
    }

    /** The pipeline that the connection is of. */
    public String id() {
      return fields.get("pool") + "~" + fields.get("block") + "~" + fields.get("generation");
    }
  }

  /** An answer. */
  public record Reply(int status, String body) {}

  private final HttpServer server;
  private final ExecutorService threads = Executors.newCachedThreadPool();
  private final List<Told> told = new CopyOnWriteArrayList<>();
  private final Map<String, Set<String>> positions = new ConcurrentHashMap<>();
  private volatile Function<Told, Reply> replies = this::usual;
  private volatile double leaseS = 60;

  /** By plain HTTP. */
  public TestController() throws IOException {
    this(null);
  }

  /** By TLS, or plain HTTP where there is no context for it. */
  TestController(SSLContext tls) throws IOException {
    InetSocketAddress any = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
    if (tls == null) {
      server = HttpServer.create(any, 0);
    } else {
      HttpsServer secure = HttpsServer.create(any, 0);
      secure.setHttpsConfigurator(new HttpsConfigurator(tls));
      server = secure;
    }
    server.setExecutor(threads);
    server.createContext("/", this::exchange);
    server.start();
  }

  /** Where it is, without a scheme. */
  public String address() {
    return "127.0.0.1:" + server.getAddress().getPort();
  }

  /** How long pipelines are leased. */
  void lease(double seconds) {
    leaseS = seconds;
  }

  /** Answers otherwise than usually. */
  void replies(Function<Told, Reply> otherwise) {
    replies = otherwise;
  }

  /** All that it was told so far. */
  public List<Told> told() {
    return List.copyOf(told);
  }

  /** The reports among it, each once however often it came. */
  public List<Told> reports() {
    return told.stream().filter(one -> one.method().equals("POST")).distinct().toList();
  }

  /** The pipelines that it was told to end. */
  public List<String> ended() {
    return told.stream()
        .filter(one -> one.method().equals("DELETE"))
        .map(one -> one.path().substring("/v1/mirrors/".length()))
        .toList();
  }

  /** Pipelines that have not ended, with the positions that are known of each. */
  public Map<String, Set<String>> live() {
    return Map.copyOf(positions);
  }

  /** Knows no pipeline any more, as after a start. */
  void forget() {
    positions.clear();
  }

  /** Waits until something is so, for very long at most. */
  public static void await(BooleanSupplier so, Object about) throws InterruptedException {
    long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(60);
    while (!so.getAsBoolean()) {
      if (System.nanoTime() - deadline > 0) {
        throw new AssertionError("not so within a minute: " + about);
      }
      Thread.sleep(5);
    }
  }

  private void exchange(HttpExchange exchange) throws IOException {
    try (exchange) {
      String body = new String(exchange.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
      Told one =
          new Told(
              exchange.getRequestMethod(),
              exchange.getRequestURI().getPath(),
              exchange.getRequestHeaders().getFirst("Authorization"),
              body.isEmpty() ? Map.of() : Json.scalars(body));
      told.add(one);
      Reply reply = replies.apply(one);
      byte[] answer = reply.body().getBytes(StandardCharsets.UTF_8);
      exchange.sendResponseHeaders(reply.status(), answer.length == 0 ? -1 : answer.length);
      if (answer.length > 0) {
        exchange.getResponseBody().write(answer);
      }
    }
  }

  /** As a controller does whose switches are quick. */
  Reply usual(Told one) {
    if (one.method().equals("DELETE")) {
      String id = one.path().substring("/v1/mirrors/".length());
      return new Reply(positions.remove(id) == null ? 404 : 204, "");
    }
    Set<String> known = positions.computeIfAbsent(one.id(), id -> new ConcurrentSkipListSet<>());
    known.add(one.fields().get("position"));
    int replicas = Integer.parseInt(one.fields().get("replicas"));
    long waitMs = Long.parseLong(one.fields().get("wait_ms"));
    long until = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(waitMs);
    while (known.size() < replicas && System.nanoTime() - until < 0) {
      Thread.onSpinWait();
    }
    return state(one, known.size() == replicas ? "armed" : "announced");
  }

  /** An answer that tells a state of the pipeline. */
  Reply state(Told one, String state) {
    boolean refused = state.equals("refused");
    ObjectNode json = new ObjectMapper().createObjectNode();
    json.put("id", one.id()).put("state", state);
    json.put("why", refused ? "no_path" : null).put("what", refused ? "no path\nleads there" : "");
    json.putArray("hops");
    json.put("lease_s", leaseS);
    return new Reply(200, json.toString());
  }

  @Override
  public void close() {
    server.stop(0);
    threads.shutdownNow();
  }
}

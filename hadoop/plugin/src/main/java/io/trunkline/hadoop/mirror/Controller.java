package io.trunkline.hadoop.mirror;

import io.trunkline.hadoop.conf.Json;
import io.trunkline.hadoop.conf.MirrorSettings;
import io.trunkline.hadoop.conf.Setting;
import java.io.IOException;
import java.net.ConnectException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import javax.net.ssl.SSLContext;

/** The controller's REST interface, as far as pipelines are reported to it. */
final class Controller {
  private static final Duration CONNECT = Duration.ofSeconds(2);

  /** How long an answer may take beyond what it was told to wait, in milliseconds. */
  private static final int ANSWER_MS = 3000;

  private static final int OK = 200;
  private static final int NO_CONTENT = 204;
  private static final int UNAUTHORIZED = 401;
  private static final int NOT_FOUND = 404;
  private static final int CONFLICT = 409;
  private static final int TOO_LARGE = 413;
  private static final int UNPROCESSABLE = 422;
  private static final int SERVER_ERROR = 500;

  private final URI url;
  private final String token;
  private final SSLContext tls;
  private HttpClient client;

  /**
   * A client of the controller; connects when something is asked.
   *
   * @param settings say where it is, and what it is asked with
   * @throws IOException when a file that they name is not as it should be
   */
  Controller(MirrorSettings settings) throws IOException {
    url = settings.controller();
    token = Credentials.token(settings.tokenFile());
    tls = isHttps() ? Credentials.tls(settings.caFile()) : null;
  }

  /** Made when something is asked, as its threads join the thread group of whoever makes it. */
  private synchronized HttpClient client() {
    if (client == null) {
      // An upgrade to HTTP/2 would be asked for by headers that HTTP/1.1 servers complain of.
      HttpClient.Builder builder =
          HttpClient.newBuilder()
              .version(HttpClient.Version.HTTP_1_1)
              .connectTimeout(CONNECT)
              .followRedirects(HttpClient.Redirect.NEVER)
              .proxy(HttpClient.Builder.NO_PROXY);
      if (tls != null) {
        builder.sslContext(tls);
      }
      client = builder.build();
    }
    return client;
  }

  /** Whether its token can be read by others on its way. */
  boolean tokenInClear() {
    String host = url.getHost();
    boolean here = host.equals("localhost") || host.startsWith("127.") || host.equals("[::1]");
    return !token.isEmpty() && !isHttps() && !here;
  }

  private boolean isHttps() {
    return url.getScheme().equals("https");
  }

  /**
   * Reports connections of a pipeline at once, or renews its lease.
   *
   * @param hops the connections
   * @param waitMs how long the answer of the last may wait for the pipeline to be armed, in
   *     milliseconds
   * @return what the controller says
   * @throws IOException when an answer did not come, or is none
   */
  Told report(List<Hop> hops, int waitMs) throws IOException, InterruptedException {
    List<Asked> asked = new ArrayList<>();
    try {
      for (Hop hop : hops) {
        asked.add(report(hop, hop.last() ? waitMs : 0));
      }
      Answer answer = null;
      List<RefusedException> refusals = new ArrayList<>();
      for (Asked one : asked) {
        HttpResponse<byte[]> said = answer(one);
        if (said.statusCode() == OK) {
          answer = Answer.of(text(said));
        } else {
          refusals.add(refusal(said));
        }
      }
      return new Told(answer, refusals);
    } finally {
      asked.forEach(one -> one.sent().cancel(true));
    }
  }

  private Asked report(Hop hop, int waitMs) {
    HttpRequest request =
        request("/v1/mirrors")
            .header("Content-Type", "application/json")
            .POST(BodyPublishers.ofString(hop.json(waitMs)))
            .build();
    return ask(request, waitMs);
  }

  /**
   * Ends a pipeline. One that has ended already is no failure.
   *
   * @param id from the answer to a report
   * @throws RefusedException when the controller does not take it
   * @throws IOException when no answer came, or one that is none
   */
  void end(String id) throws RefusedException, IOException, InterruptedException {
    HttpResponse<byte[]> answer = answer(ask(request("/v1/mirrors/" + id).DELETE().build(), 0));
    int status = answer.statusCode();
    if (status != NO_CONTENT && status != OK && status != NOT_FOUND) {
      throw refusal(answer);
    }
  }

  private HttpRequest.Builder request(String path) {
    HttpRequest.Builder builder = HttpRequest.newBuilder(URI.create(url + path));
    if (!token.isEmpty()) {
      builder.header("Authorization", "Bearer " + token);
    }
    return builder;
  }

  /**
   * What was asked and is not answered yet.
   *
   * @param request it
   * @param sent its answer
   * @param limitMs how long it may take, in milliseconds
   */
  private record Asked(
      HttpRequest request, CompletableFuture<HttpResponse<byte[]>> sent, int limitMs) {}

  /** The time begins when all connections are known, of which others may come while it waits. */
  private Asked ask(HttpRequest request, int waitMs) {
    return new Asked(
        request, client().sendAsync(request, head -> new ShortBody()), ANSWER_MS + 2 * waitMs);
  }

  private HttpResponse<byte[]> answer(Asked asked) throws IOException, InterruptedException {
    try {
      return await(asked);
    } catch (ConnectException | HttpTimeoutException e) {
      throw e;
    } catch (IOException e) {
      // The server may just have closed a connection that was kept; what is asked can be repeated.
      return await(
          new Asked(
              asked.request(),
              client().sendAsync(asked.request(), head -> new ShortBody()),
              asked.limitMs()));
    }
  }

  private static HttpResponse<byte[]> await(Asked asked) throws IOException, InterruptedException {
    try {
      return asked.sent().get(asked.limitMs(), TimeUnit.MILLISECONDS);
    } catch (TimeoutException e) {
      throw new HttpTimeoutException("no whole answer within " + asked.limitMs() + " ms");
    } catch (ExecutionException e) {
      if (e.getCause() instanceof ConnectException) {
        throw new ConnectException("no connection to it can be made");
      }
      if (e.getCause() instanceof HttpTimeoutException cause) {
        throw cause;
      }
      Throwable cause = e.getCause();
      boolean says = cause instanceof IOException && cause.getMessage() != null;
      throw new IOException(says ? cause.getMessage() : cause.toString(), cause);
    } finally {
      asked.sent().cancel(true);
    }
  }

  private static String text(HttpResponse<byte[]> answer) {
    return new String(answer.body(), StandardCharsets.UTF_8);
  }

  /** What a status other than success says (RFC 9457, where it is a controller's). */
  private static RefusedException refusal(HttpResponse<byte[]> answer) throws IOException {
    int status = answer.statusCode();
    Map<String, String> problem = problem(answer);
    String detail = Text.printable(problem.get("detail"));
    String what = "HTTP status " + status + (detail.isEmpty() ? "" : ": " + detail);
    if (status >= SERVER_ERROR || status < 400) {
      throw new IOException(what);
    }
    String why = Text.word(problem.get("why"));
    boolean ofThis = status == CONFLICT || status == TOO_LARGE || status == UNPROCESSABLE;
    return new RefusedException(
        why.isEmpty() ? "http_" + status : why, !ofThis, what + "; " + remedy(status, problem));
  }

  private static Map<String, String> problem(HttpResponse<byte[]> answer) {
    try {
      return Json.scalars(text(answer));
    } catch (IOException e) {
      return Map.of(); // not a controller's
    }
  }

  private static String remedy(int status, Map<String, String> problem) {
    return switch (status) {
      case UNAUTHORIZED ->
          "set " + Setting.MIRROR_TOKEN_FILE.key() + " to a file with the controller's token";
      case NOT_FOUND ->
          "set " + Setting.MIRROR_CONTROLLER.key() + " to a controller's REST interface";
      default -> {
        String said = Text.printable(problem.get("remedy"));
        yield said.isEmpty() ? "look at the controller's log" : said;
      }
    };
  }
}

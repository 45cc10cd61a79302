package io.trunkline.hadoop.mirror;

import io.trunkline.hadoop.conf.Json;
import io.trunkline.hadoop.conf.MirrorSettings;
import io.trunkline.hadoop.conf.Setting;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.ConnectException;
import java.net.HttpURLConnection;
import java.net.Proxy;
import java.net.SocketTimeoutException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import javax.net.ssl.HttpsURLConnection;
import javax.net.ssl.SSLContext;

/**
 * The controller's REST interface, as far as pipelines are reported to it. Few requests are made,
 * so that the JVM hardly ever compiles what makes them: it is a client that does little for each.
 */
final class Controller {
  private static final int CONNECT_MS = 2000;

  /** How long an answer may take beyond what it was told to wait, in milliseconds. */
  private static final int ANSWER_MS = 3000;

  private static final int MAX_BYTES = 64 << 10;
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
  private final ScheduledThreadPoolExecutor limits;

  /**
   * A client of the controller; connects when something is asked.
   *
   * @param settings say where it is, and what it is asked with
   * @param limits ends what takes too long, and waits for nothing itself
   * @throws IOException when a file that they name is not as it should be
   */
  Controller(MirrorSettings settings, ScheduledThreadPoolExecutor limits) throws IOException {
    url = settings.controller();
    token = Credentials.token(settings.tokenFile());
    tls = isHttps() ? Credentials.tls(settings.caFile()) : null;
    this.limits = limits;
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
   * Reports connections of a pipeline, or renews its lease.
   *
   * @param hops the connections
   * @param waitMs how long the answer of the last may wait for the pipeline to be armed, in
   *     milliseconds
   * @return what the controller says
   * @throws IOException when an answer did not come, or is none
   */
  Told report(List<Hop> hops, int waitMs) throws IOException {
    Answer answer = null;
    List<RefusedException> refusals = new ArrayList<>();
    for (Hop hop : hops) {
      int waits = hop.last() ? waitMs : 0;
      Reply said = ask("POST", "/v1/mirrors", hop.json(waits), waits);
      if (said.status() == OK) {
        answer = Answer.of(said.text());
      } else {
        refusals.add(refusal(said));
      }
    }
    return new Told(answer, refusals);
  }

  /**
   * Ends a pipeline. One that has ended already is no failure.
   *
   * @param id from the answer to a report
   * @throws RefusedException when the controller does not take it
   * @throws IOException when no answer came, or one that is none
   */
  void end(String id) throws RefusedException, IOException {
    Reply said = ask("DELETE", "/v1/mirrors/" + id, "", 0);
    int status = said.status();
    if (status != NO_CONTENT && status != OK && status != NOT_FOUND) {
      throw refusal(said);
    }
  }

  /** An answer: its HTTP status and its body. */
  private record Reply(int status, String text) {}

  /** The time begins when all connections are known, of which others may come while it waits. */
  private Reply ask(String method, String path, String body, int waitMs) throws IOException {
    int limitMs = ANSWER_MS + 2 * waitMs;
    try {
      return askOnce(method, path, body, limitMs);
    } catch (ConnectException | SocketTimeoutException e) {
      throw e;
    } catch (IOException e) {
      // The server may just have closed a connection that was kept; what is asked can be repeated.
      return askOnce(method, path, body, limitMs);
    }
  }

  private Reply askOnce(String method, String path, String body, int limitMs) throws IOException {
    HttpURLConnection connection = open(path);
    AtomicBoolean isLate = new AtomicBoolean();
    long untilNanos = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(CONNECT_MS + limitMs);
    ScheduledFuture<?> limit =
        limits.schedule(
            () -> {
              isLate.set(true);
              connection.disconnect();
            },
            CONNECT_MS + limitMs,
            TimeUnit.MILLISECONDS);
    try {
      connection.setRequestMethod(method);
      connection.setReadTimeout(limitMs);
      if (!body.isEmpty()) {
        connection.setDoOutput(true);
        connection.setRequestProperty("Content-Type", "application/json");
        try (OutputStream out = connection.getOutputStream()) {
          out.write(body.getBytes(StandardCharsets.UTF_8));
        }
      }
      return reply(connection, untilNanos);
    } catch (IOException e) {
      if (!isLate.get()) {
        connection.disconnect();
      }
      if (isLate.get() || e instanceof SocketTimeoutException) {
        throw new SocketTimeoutException("no whole answer within " + limitMs + " ms");
      }
      if (e instanceof ConnectException) {
        throw new ConnectException("no connection to it can be made");
      }
      throw e;
    } finally {
      limit.cancel(false);
    }
  }

  private HttpURLConnection open(String path) throws IOException {
    HttpURLConnection connection =
        (HttpURLConnection) URI.create(url + path).toURL().openConnection(Proxy.NO_PROXY);
    if (connection instanceof HttpsURLConnection secure) {
      secure.setSSLSocketFactory(tls.getSocketFactory());
    }
    connection.setConnectTimeout(CONNECT_MS);
    connection.setInstanceFollowRedirects(false);
    if (!token.isEmpty()) {
      connection.setRequestProperty("Authorization", "Bearer " + token);
    }
    return connection;
  }

  private static Reply reply(HttpURLConnection connection, long untilNanos) throws IOException {
    int status = connection.getResponseCode();
    if (status < 0) {
      throw new IOException("no answer of HTTP");
    }
    InputStream in = status < 400 ? connection.getInputStream() : connection.getErrorStream();
    return new Reply(status, in == null ? "" : text(in, untilNanos));
  }

  /** Read to its end, the connection is kept. Else it is not closed, which might read on. */
  private static String text(InputStream in, long untilNanos) throws IOException {
    byte[] body = new byte[MAX_BYTES];
    int length = 0;
    for (int read = 0; read >= 0; read = in.read(body, length, body.length - length)) {
      length += read;
      if (length == body.length) {
        throw new IOException("an answer of " + MAX_BYTES + " bytes and more");
      }
      if (System.nanoTime() - untilNanos > 0) {
        throw new SocketTimeoutException();
      }
    }
    return new String(body, 0, length, StandardCharsets.UTF_8);
  }

  /** What a status other than success says (RFC 9457, where it is a controller's). */
  private static RefusedException refusal(Reply answer) throws IOException {
    int status = answer.status();
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

  private static Map<String, String> problem(Reply answer) {
    try {
      return Json.scalars(answer.text());
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

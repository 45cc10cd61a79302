package io.trunkline.hadoop.ucx;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.trunkline.hadoop.conf.UcxSettings;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;

/** What tests of streams over UCX share. */
final class UcxTests {
  static final InetSocketAddress ANY = new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);

  private UcxTests() {}

  /** Skips the test, with the reason, on a machine without UCX. */
  static void needUcx() {
    UcxLibrary.Status status = UcxLibrary.probe(UcxSettings.builder().build());
    assumeTrue(status.available(), status.reason());
  }

  /** Threads of UCX nodes; those of clients and DataNodes in this JVM stay for a while. */
  static Set<Thread> threads() {
    return Thread.getAllStackTraces().keySet().stream()
        .filter(thread -> thread.getName().startsWith("trunkline-ucx"))
        .collect(Collectors.toSet());
  }

  /** A JVM that runs {@link SelfTest}. */
  static Process selfTest(String tls, String... arguments) throws IOException {
    ProcessBuilder builder = builder(SelfTest.class, arguments);
    builder.environment().put("UCX_TLS", tls);
    return builder.start();
  }

  /** A JVM that runs a class; what it says goes nowhere. */
  static Process java(Class<?> main, String... arguments) throws IOException {
    return builder(main, arguments).redirectOutput(ProcessBuilder.Redirect.DISCARD).start();
  }

  /** A JVM that runs a class, with an option of its own. */
  static Process java(String option, Class<?> main) throws IOException {
    ProcessBuilder builder = builder(main);
    builder.command().add(1, option);
    return builder.start();
  }

  private static ProcessBuilder builder(Class<?> main, String... arguments) {
    List<String> command = new ArrayList<>();
    command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
    command.addAll(List.of("-Xmx256m", "-cp", System.getProperty("java.class.path")));
    command.add(main.getName());
    command.addAll(List.of(arguments));
    return new ProcessBuilder(command).redirectErrorStream(true);
  }

  /** What it says until it ends, or until a line begins so. */
  static String say(Process process, String until) throws IOException {
    BufferedReader said =
        new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
    StringBuilder all = new StringBuilder();
    for (String line = said.readLine(); line != null; line = said.readLine()) {
      all.append(line).append('\n');
      if (until != null && line.startsWith(until)) {
        return line.substring(until.length());
      }
    }
    return all.toString();
  }

  /** Waits for what other threads bring about. */
  static void eventually(String what, BooleanSupplier good) throws InterruptedException {
    long deadline = System.nanoTime() + 20_000_000_000L;
    while (!good.getAsBoolean()) {
      if (System.nanoTime() - deadline > 0) {
        throw new AssertionError(what);
      }
      Thread.sleep(10);
    }
  }
}

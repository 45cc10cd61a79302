package io.trunkline.hadoop.mark;

import java.util.List;

/**
 * Whether this process runs tasks of a job, by its main class: MapReduce's, Spark's executors on
 * any cluster manager, and Tez's. A job's ApplicationMaster and a task inside a client's process
 * (MapReduce's and Spark's local modes) are not told.
 */
final class TaskProcess {
  private static final List<String> MAIN_CLASSES =
      List.of(
          "org.apache.hadoop.mapred.YarnChild",
          "org.apache.spark.executor.CoarseGrainedExecutorBackend",
          "org.apache.spark.executor.YarnCoarseGrainedExecutorBackend",
          "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
          "org.apache.tez.runtime.task.TezChild");

  /** Main class and arguments, as the JVM was started. */
  private static final boolean THIS = runsTasks(System.getProperty("sun.java.command", ""));

  private TaskProcess() {}

  static boolean isThis() {
    return THIS;
  }

  static boolean runsTasks(String command) {
    int end = command.indexOf(' ');
    return MAIN_CLASSES.contains(end < 0 ? command : command.substring(0, end));
  }
}

package io.trunkline.hadoop.util;

import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Makes threads that serve the whole process, whoever happens to need the first of them.
 *
 * <p>They are daemons, and of the outermost group. A DataNode counts the threads of its own group
 * as transfers and interrupts them when it stops; a thread is of its maker's group otherwise.
 */
public final class DaemonThreads implements ThreadFactory {
  private final ThreadGroup group = outermost();
  private final AtomicInteger made = new AtomicInteger();
  private final String name;

  /**
   * Threads of one kind.
   *
   * @param name what they are called; the second and later ones have their number behind it
   */
  public DaemonThreads(String name) {
    this.name = name;
  }

  private static ThreadGroup outermost() {
    ThreadGroup group = Thread.currentThread().getThreadGroup();
    while (group.getParent() != null) {
      group = group.getParent();
    }
    return group;
  }

  @Override
  public Thread newThread(Runnable task) {
    int number = made.incrementAndGet();
    Thread thread = new Thread(group, task, number == 1 ? name : name + "-" + number);
    thread.setDaemon(true);
    return thread;
  }
}

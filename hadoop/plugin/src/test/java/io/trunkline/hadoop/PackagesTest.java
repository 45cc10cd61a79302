package io.trunkline.hadoop;

import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideOutsideOfPackages;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import io.trunkline.hadoop.tap.TapChannel;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Which package of the plug-in may know which. */
class PackagesTest {
  private static final String BASE = "io.trunkline.hadoop";

  private static JavaClasses classes;

  @BeforeAll
  static void read() {
    classes =
        new ClassFileImporter()
            .withImportOption(where -> !where.contains("/test-classes/"))
            .importPackages(BASE, "org.apache.hadoop.hdfs.server.datanode");
    assertTrue(classes.contain(TrunklineSocketFactory.class));
  }

  @Test
  void noPackagesLieInACircle() {
    slices().matching(BASE + ".(**)").should().beFreeOfCycles().check(classes);
  }

  /** Names, settings and helpers know nothing but each other and Hadoop. */
  @Test
  void leavesKnowNobody() {
    for (String leaf : new String[] {"conf", "util", "library", "wire"}) {
      noClasses()
          .that()
          .resideInAPackage(BASE + "." + leaf)
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage(
              BASE,
              BASE + ".stats..",
              BASE + ".tap..",
              BASE + ".transport..",
              BASE + ".ndn..",
              BASE + ".ucx..",
              BASE + ".mirror..",
              BASE + ".read..")
          .check(classes);
    }
  }

  /** What reads along on a connection knows HDFS's frames, and no transport that it serves. */
  @Test
  void theTapKnowsNoTransport() {
    assertTrue(classes.contain(TapChannel.class));
    noClasses()
        .that()
        .resideInAPackage(BASE + ".tap..")
        .should()
        .dependOnClassesThat(
            resideInAPackage(BASE + "..")
                .and(
                    resideOutsideOfPackages(
                        BASE + ".tap..",
                        BASE + ".wire",
                        BASE + ".util",
                        BASE + ".conf",
                        BASE + ".library")))
        .check(classes);
  }

  /** One transport never knows of another, and what all share knows of none. */
  @Test
  void onlyTheRootKnowsAllTransports() {
    Set<String> transports = Set.of(BASE + ".ndn..", BASE + ".ucx..", BASE + ".mirror..");
    for (String one : transports) {
      Set<String> forbidden = new HashSet<>(transports);
      forbidden.remove(one);
      forbidden.addAll(Set.of(BASE, BASE + ".read.."));
      noClasses()
          .that()
          .resideInAnyPackage(BASE + ".transport..", one, BASE + ".stats..")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage(forbidden.toArray(String[]::new))
          .check(classes);
    }
  }

  /** The shims in Hadoop's own packages hand on to the root and know nothing else. */
  @Test
  void shimsHandOn() {
    noClasses()
        .that()
        .resideInAPackage("org.apache.hadoop..")
        .should()
        .dependOnClassesThat()
        .resideInAnyPackage(
            BASE + ".ndn..",
            BASE + ".ucx..",
            BASE + ".mirror..",
            BASE + ".conf..",
            BASE + ".stats..")
        .check(classes);
  }
}

"""Hadoop's own HDFS test classes over a plane, beside the same over stock TCP.

The classes are those of the hadoop-hdfs tests jar, untouched; a configuration directory that stands first on the class
path puts the plug-in under every mini cluster that they start. Each class runs in a JVM of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from . import paths, planes, procs, report, stock
from .cluster import QUICK_TO_START, TUNED, Properties, write_xml
from .procs import ProcessFailed, Stage
from .say import say

DEFAULT_CLASSES = (
    "TestFileCreation",
    "TestWriteRead",
    "TestHFlush",
    "TestReplaceDatanodeOnFailure",
    "TestClientProtocolForPipelineRecovery",
)
# What HDFS protects data transfer by.
SECURED_CLASSES = (
    "TestSaslDataTransfer",
    "TestEncryptedTransfer",
    "TestBlockTokenWithDFS",
    "TestBalancerWithEncryptedTransfer",
)
# On one host no switch can mirror anything: what is tested is that DataNodes which report in vain write as over TCP.
NO_CONTROLLER = "http://127.0.0.1:9"
PLANES = (*planes.NAMES, "mirror")
WRITES = {"ndn": "named_writes", "ucx": "ucx_writes", "mirror": "mirror_reported"}  # the plug-in's counter, by plane
CLASS_TIMEOUT_S = 12 * 60  # the longest takes 4 minutes
DUMP_S = 5  # for a JVM to print what its threads are at
TURNS = 3  # for what failed, by itself

# Why a failure is not held against a plane.
TCP_TOO = "fails on stock TCP too"
PASSED_AGAIN = "passed when run again"
HUNG = "(class): not done"
CONSOLE = "org.junit.platform.console.ConsoleLauncher"


@dataclass(frozen=True)
class Known:
    """A test that looks for something which a plane leaves out on purpose.

    It is run and shown as any other one. A failure of it is excused when the regular expressions match: `method` all of
    the method, and `message` a part of its message. What fails in another way is held against the plane.
    """

    plane: str
    name: str
    method: str
    message: str
    why: str

    def explains(self, name: str, result: Result, failure: str) -> bool:
        """Whether this is why a method of class `name` failed."""
        method, _, message = failure.partition(": ")
        return (
            (result.plane, name.rpartition(".")[2]) == (self.plane, self.name)
            and re.fullmatch(self.method, method) is not None
            and re.search(self.message, message) is not None
        )


KNOWN = (
    Known(
        plane="ndn",
        name="TestEncryptedTransfer",
        method=r"testLongLivedClientPipelineRecovery(\(String\)\[\d+\]|\(\)|)",
        message=r"\"this\.val\$encryptionKey\" is null",
        why="looks at the key of the stock handshake, which a write by name does not ask the NameNode for",
    ),
    # In all three the block token secures what goes by name: write and read, sealed, whatever SASL is set to.
    Known(
        plane="ndn",
        name="TestSaslDataTransfer",
        method=r"testServerSaslNoClientSasl(\(\)|)",
        message=r"^Should fail if SASL data transfer protection is not configured",
        why="looks for the stock handshake to refuse; by name the block token secures write and read",
    ),
    Known(
        plane="ndn",
        name="TestSaslDataTransfer",
        method=r"testClientAndServerDoNotHaveCommonQop(\(\)|)",
        message=r"^Expected java\.io\.IOException to be thrown, but nothing was thrown",
        why="looks for the stock handshake to refuse; by name the block token secures write and read",
    ),
    Known(
        plane="ndn",
        name="TestEncryptedTransfer",
        method=r"testClientThatDoesNotSupportEncryption(\(String\)\[\d+\]|\(\)|)",
        message=r"match /Failed to read expected encryption handshake from client at/ but got:\s+==>",
        why="looks for the stock handshake to refuse; by name the block token secures the read",
    ),
)

# What Hadoop's own tree gives its HDFS tests (hadoop-hdfs/src/test/resources), which the tests jar leaves out.
TEST_SITE = {"dfs.namenode.fs-limits.min-block-size": "0", "hadoop.security.authentication": "simple"}

# Hadoop's own tests change private fields of the JDK; its build passes the same to Surefire. The plug-in needs none.
ADD_OPENS = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in (
    "java.io", "java.lang", "java.lang.reflect", "java.math", "java.net", "java.text", "java.util",
    "java.util.concurrent", "java.util.zip", "sun.security.util", "sun.security.x509",
)]  # fmt: skip

LOG4J = """\
log4j.rootLogger=INFO,file
log4j.appender.file=org.apache.log4j.FileAppender
log4j.appender.file.file={log}
log4j.appender.file.append=false
log4j.appender.file.layout=org.apache.log4j.PatternLayout
log4j.appender.file.layout.ConversionPattern=%d{{ISO8601}} [%t] %-5p %c{{2}} (%F:%M(%L)) - %m%n
"""


@dataclass
class Result:
    """What one class did on one plane; `failures` holds "method: first line of the message".

    The second line goes along where the first one ends with a colon.
    """

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    failures: list[str] = field(default_factory=list)
    carried: int = 0  # block writes that the plane carried, by the plug-in's own counters
    plane: str = ""
    excused: dict[str, str] = field(default_factory=dict)  # of the failures, those not held against the plane, and why

    @property
    def held(self) -> list[str]:
        """The failures that are held against the plane."""
        return [failure for failure in self.failures if failure not in self.excused]

    @property
    def text(self) -> str:
        return f"{self.passed} / {self.failed} / {self.skipped}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--hadoop", default=stock.NEWEST, choices=stock.VERSIONS, help="version of Hadoop (default: %(default)s)"
    )
    parser.add_argument("--plane", default="ndn", choices=PLANES, help="what carries the data (default: ndn)")
    secured = "; with ndn also " + " ".join(SECURED_CLASSES)
    parser.add_argument(
        "--classes", nargs="*", help="simple or full names (default: " + " ".join(DEFAULT_CLASSES) + secured + ")"
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")


def main(arguments: argparse.Namespace) -> int:
    if arguments.plane == "ucx" and (lack := planes.ucx_missing()):
        raise RuntimeError(f"hadoop-tests: UCX can't be used here: {lack}")
    jars = stock.classpath("test", hadoop=arguments.hadoop)
    wanted = find_classes(jars, arguments.classes or classes_for(arguments.plane))
    columns = ["tcp"] if arguments.plane == "tcp" else [arguments.plane, "tcp"]
    results: dict[str, dict[str, Result]] = {}
    directory = directory_of(arguments.hadoop, arguments.plane)
    with Stage(directory / "logs") as stage:
        for name in wanted:
            short = name.rpartition(".")[2]
            for plane in columns:
                say(f"{short} on {plane}")
                result = run_whole(stage, directory, jars, name, plane)
                results.setdefault(short, {})[plane] = result
                say(f"{short} on {plane}: {result.passed} passed, {result.failed} failed, {result.skipped} skipped")
            excuse_alike(results[short], arguments.plane)
            excuse_known(short, results[short][arguments.plane])
            run_again(stage, directory, jars, name, results[short][arguments.plane])
    document = {name: {plane: vars(r) for plane, r in by.items()} for name, by in results.items()}
    (directory / "results.json").write_text(json.dumps(document, indent=2) + "\n")
    print(json.dumps(document, indent=2) if arguments.json else render(results, columns, arguments.hadoop))
    return 0 if acceptable(results, arguments.plane) else 1


def classes_for(plane: str) -> list[str]:
    """What is run on a plane where nobody names classes: by name, those of what protects data transfer, too."""
    return [*DEFAULT_CLASSES, *(SECURED_CLASSES if plane == "ndn" else ())]


def directory_of(hadoop: str, plane: str) -> Path:
    """Where the tests of a version of Hadoop on a plane, and beside it on stock TCP, leave what they leave."""
    return paths.OUT / "hadoop-tests" / hadoop / plane


def method_of(failure: str) -> str:
    """The method that failed, as JUnit's console selects it; empty for a class that could not be run, and the like.

    One with a parameter is run with each of its arguments.
    """
    name = failure.partition(":")[0].removesuffix("()")
    name, with_text, _ = name.partition("(String)[")
    return f"{name}(java.lang.String)" if with_text and name.isidentifier() else name if name.isidentifier() else ""


def excuse_alike(by: dict[str, Result], plane: str) -> None:
    """Excuses failures of a class on `plane` that stock TCP, run beside it, has too."""
    if plane != "tcp":
        known = {failure.partition(":")[0] for failure in by["tcp"].failures}
        alike = [failure for failure in by[plane].failures if failure.partition(":")[0] in known]
        by[plane].excused.update(dict.fromkeys(alike, TCP_TOO))


def excuse_known(name: str, result: Result) -> None:
    """Excuses failures of class `name` that look for what the plane leaves out."""
    for failure in result.held:
        for known in KNOWN:
            if known.explains(name, result, failure):
                result.excused[failure] = known.why


def run_again(stage: Stage, directory: Path, jars: list[str], name: str, result: Result) -> None:
    """Some of Hadoop's tests watch the clock and fail now and then on any plane.

    So each method that failed is run by itself, on stock TCP and on the plane by turns, until it has failed there or
    passed here, and is excused then.
    """
    for failure in result.held if result.plane != "tcp" else []:
        method = method_of(failure)
        for turn in range(TURNS if method else 0):
            say(f"{method} failed on {result.plane}; by itself, {turn + 1} of {TURNS}")
            if run_class(stage, directory, jars, name, "tcp", methods=[method]).failed:
                result.excused[failure] = TCP_TOO
            elif not run_class(stage, directory, jars, name, result.plane, methods=[method]).failed:
                result.excused[failure] = PASSED_AGAIN
            if failure in result.excused:
                break


def acceptable(results: dict[str, dict[str, Result]], plane: str) -> bool:
    """Whether every class passed on `plane`, but for what is excused."""
    for by in results.values():
        if by[plane].held:
            return False
        if by[plane].passed + by[plane].skipped == 0:
            return False  # whatever excuses all that failed, nothing was tested
    return plane == "tcp" or any(by[plane].carried for by in results.values())


def tests_jar(jars: list[str]) -> str:
    """The jar with Hadoop's own HDFS tests."""
    tests = [jar for jar in jars if re.search(r"hadoop-hdfs-[\d.]+-tests\.jar$", jar)]
    if not tests:
        raise RuntimeError("the hadoop-hdfs tests jar is not on the test class path; see lab/stock/pom.xml")
    return tests[0]


def find_classes(jars: list[str], names: list[str]) -> list[str]:
    """Full names of the test classes `names`; raises ValueError for one that the tests jar does not hold."""
    jar = tests_jar(jars)
    with zipfile.ZipFile(jar) as archive:
        known = [
            n[: -len(".class")].replace("/", ".") for n in archive.namelist() if n.endswith(".class") and "$" not in n
        ]
    found = []
    for name in names:
        match = [full for full in known if full == name or full.rpartition(".")[2] == name]
        if len(match) != 1:
            raise ValueError(
                f"CLASSES: {name}: {'no such class' if not match else 'more than one'} in {Path(jar).name}"
                + (": " + ", ".join(match) if match else "")
            )
        found.append(match[0])
    return found


def properties(plane: str, stats: Path) -> Properties:
    """The properties under which the tests run; one JVM is a whole cluster, so its own forwarder is the network."""
    if plane == "tcp":
        return TEST_SITE
    pasted = planes.pasted(plane)
    if plane == "mirror":
        pasted["trunkline.mirror.controller"] = NO_CONTROLLER
    # Hadoop's tests count on its own, for instance that 128 KiB leave the client at once.
    for key in TUNED:
        pasted.pop(key, None)
    if plane == "ndn":
        pasted |= planes.RESOLVER  # says no where a test's cluster is open
        pasted["trunkline.ndn.inline.bytes"] = "0"  # their files are small, and are to go by name
    return {**TEST_SITE, **pasted, "trunkline.stats.file": str(stats)}


def run_class(
    stage: Stage, directory: Path, jars: list[str], name: str, plane: str, *, methods: Sequence[str] = ()
) -> Result:
    """Runs a test class, or some methods of it, on one plane in a JVM of its own and reads JUnit's report."""
    short = name.rpartition(".")[2]
    work = directory / plane / (f"{short}-again" if methods else short)
    conf, reports = work / "conf", work / "reports"
    for made in (conf, reports):
        made.mkdir(parents=True, exist_ok=True)
    for old in [*reports.glob("*.xml"), work / "stats.json"]:
        old.unlink(missing_ok=True)
    settings = properties(plane, work / "stats.json")
    for site in ("core-site.xml", "hdfs-site.xml"):
        write_xml(conf / site, settings)
    (conf / "log4j.properties").write_text(LOG4J.format(log=work / "hadoop.log"))
    unpack_class(jars, name, conf)
    ours = [] if plane == "tcp" else [str(paths.built(paths.PLUGIN_JAR))]
    selected = [f"--select-method={name}#{method}" for method in methods] or [f"--select-class={name}"]
    command = [
        paths.java(), "-Xmx2g", "-XX:+UseSerialGC", *QUICK_TO_START, *ADD_OPENS,
        f"-Dtest.build.data={work / 'data'}", f"-Dtest.build.dir={work}",
        f"-Dhadoop.tmp.dir={work / 'tmp'}", f"-Dhadoop.log.dir={work}", "-Djava.net.preferIPv4Stack=true",
        "-cp", os.pathsep.join([str(conf), *ours, *jars]),
        CONSOLE, "execute", *selected, "--reports-dir", str(reports),
        "--details=none", "--disable-banner", "--disable-ansi-colors",
    ]  # fmt: skip
    process = stage.start(f"{plane}-{work.name}", plane, command, cwd=work)
    try:
        process.wait(CLASS_TIMEOUT_S)
    except ProcessFailed:
        return Result(
            plane=plane, failed=1, failures=[f"{HUNG} after {CLASS_TIMEOUT_S // 60} minutes; {at(process, name)}"]
        )
    result = read_reports(reports)
    result.plane = plane
    if result.passed + result.failed + result.skipped == 0:
        result.failed, result.failures = 1, [f"(class): ran no test; {process.log} ends: {procs.tail(process.log, 5)}"]
    result.carried = carried(plane, work / "stats.json")
    return result


def run_whole(stage: Stage, directory: Path, jars: list[str], name: str, plane: str) -> Result:
    """Runs a test class as `run_class` does, and once more where it does not end, as it has tested nothing then."""
    result = run_class(stage, directory, jars, name, plane)
    hung = next((failure for failure in result.failures if failure.startswith(HUNG)), "")
    if not hung:
        return result
    say(f"{name.rpartition('.')[2]} on {plane}: {hung.removeprefix('(class): ')}; once more")
    again = run_class(stage, directory, jars, name, plane)
    if not any(failure.startswith(HUNG) for failure in again.failures):
        again.excused[hung] = PASSED_AGAIN
    again.failed += 1
    again.failures.append(hung)
    return again


def at(process: procs.Process, name: str) -> str:
    """Has a JVM that hangs print its threads into its log, ends it, and says where its main thread is."""
    process.signal(signal.SIGQUIT)
    with contextlib.suppress(ProcessFailed):
        process.wait(DUMP_S)
    process.kill()
    return f"{main_thread(process.log.read_text(errors='replace'), name)}; every thread is in {process.log}"


def main_thread(log: str, name: str) -> str:
    """Where the test class `name` is, and the innermost frames of `main`, from a log that ends with a thread dump."""
    _, _, main = log.rpartition("Full thread dump")[2].partition('\n"main" ')
    frames = re.findall(r"\tat (?:\S+/)?([\w.$<>]+\([^)]*\))", main.partition("\n\n")[0])
    test = next((frame for frame in frames if frame.startswith(f"{name}.")), "")
    return "at " + " from ".join(
        [*(f for f in frames[:4] if f != test), *([test] if test else [])] or ["no known place"]
    )


def unpack_class(jars: list[str], name: str, directory: Path) -> None:
    """Puts the test class into `directory` as a file: some write settings beside where they were loaded from."""
    entry = name.replace(".", "/") + ".class"
    with zipfile.ZipFile(tests_jar(jars)) as archive:
        archive.extract(entry, directory)


def read_reports(reports: Path) -> Result:
    """Adds up the XML reports of JUnit's console launcher."""
    result = Result()
    for file in sorted(reports.glob("*.xml")):
        for case in ElementTree.parse(file).getroot().iter("testcase"):
            result.seconds += float(case.get("time") or 0)
            bad = [child for child in case if child.tag in ("failure", "error")]
            if bad:
                result.failed += 1
                said = (bad[0].get("message") or bad[0].text or "").strip().splitlines()
                first = " ".join(said[: 2 if said and said[0].endswith(":") else 1]) or bad[0].get("type")
                result.failures.append(f"{case.get('name')}: {first}")
            elif case.find("skipped") is not None:
                result.skipped += 1
            else:
                result.passed += 1
    return result


def carried(plane: str, stats: Path) -> int:
    """How many block writes went over `plane`, by the plug-in's own counters; 0 where it left none."""
    if plane == "tcp" or not stats.exists():
        return 0
    records = [json.loads(line) for line in stats.read_text().splitlines() if line.strip()]
    return sum(int(record.get(WRITES[plane], 0)) for record in records)


def render(results: dict[str, dict[str, Result]], columns: list[str], hadoop: str = stock.NEWEST) -> str:
    """The table a person reads, and each failure in full below it."""
    ours = [column for column in columns if column in WRITES]
    rows = [[f"Hadoop {hadoop}: passed / failed / skipped", *columns, *(f"blocks over {plane}" for plane in ours)]]
    for name, by in results.items():
        row = [name, *(by[c].text if c in by else "not run" for c in columns)]
        rows.append([*row, *(str(by[plane].carried) if plane in by else "" for plane in ours)])
    lines = [report.table(rows)]
    for name, by in results.items():
        for column in (column for column in columns if column in by):
            excused = by[column].excused
            lines += [
                f"{column} {name}.{failure}" + (f" ({excused[failure]})" if failure in excused else "")
                for failure in by[column].failures
            ]
    totals = [sum(getattr(by[columns[0]], kind) for by in results.values()) for kind in ("passed", "failed", "skipped")]
    lines += ["", "{} passed, {} failed, {} skipped".format(*totals)]
    if excused := sum(len(by[columns[0]].excused) for by in results.values()):
        lines.append(f"{excused} of those that failed are not held against {columns[0]}, for the reason beside each")
    return "\n".join(lines)

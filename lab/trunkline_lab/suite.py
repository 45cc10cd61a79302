"""`make test`: every stage in order, fast ones first, with one count at the end.

A stage that fails does not stop the others. The last line is `N passed, N failed, N skipped` over all of them.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from . import guest, hadoop_tests, paths, planes, procs, stock, venv, verbs
from .say import say

LOGS = paths.OUT / "test"
FSX = "0.3.2"
FUSE = "/dev/fuse"


@dataclass
class Count:
    """Test cases of a stage, and why some did not run or did not pass."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    notes: list[str] = field(default_factory=list)

    def add(self, other: Count) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.notes += other.notes

    def line(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


class Run:
    """One command of a stage: its output is shown as it comes and kept for counting.

    `quiet` keeps it in the stage's log alone and shows its end when the command fails.
    """

    def __init__(self, stage: str, command: list[str], *, quiet: bool = False) -> None:
        shown = " ".join(Path(word).name if word.startswith("/") else word for word in command)
        say(f"{stage}: {shown}")
        LOGS.mkdir(parents=True, exist_ok=True)
        lines: list[str] = []
        with (
            subprocess.Popen(
                [*procs.DIE_WITH_PARENT, *command],
                cwd=paths.ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,
            ) as process,
            (LOGS / f"{stage}.log").open("a") as log,
        ):
            assert process.stdout is not None
            try:
                for line in process.stdout:
                    lines.append(line.rstrip("\n"))
                    log.write(line)
                    if not quiet:
                        print(f"  {line}", end="", flush=True)
            except BaseException:
                procs.end_group(process)
                raise
        self.lines = lines
        self.status = process.returncode
        self.command = shown
        if quiet and self.status:
            print("\n".join(f"  {line}" for line in lines[-80:]), flush=True)

    def as_check(self) -> Count:
        """A command that counts as one case: passed when it ends with status 0."""
        if self.status == 0:
            return Count(passed=1)
        return Count(failed=1, notes=[f"{self.command}: status {self.status}"])


def _lab() -> Count:
    count = Run("lab", [venv.tool("ruff"), "check", "lab"]).as_check()
    count.add(Run("lab", [venv.tool("ruff"), "format", "--check", "lab"]).as_check())
    count.add(_pytest("lab", "lab/tests", "not e2e"))
    return count


def _pytest(stage: str, where: str, mark: str) -> Count:
    report = LOGS / f"{stage}-pytest.xml"
    report.unlink(missing_ok=True)
    run = Run(
        stage,
        [
            venv.tool("pytest"),
            "-c",
            "lab/pyproject.toml",
            "--rootdir",
            "lab",
            "-m",
            mark,
            f"--junit-xml={report}",
            where,
        ],
    )
    return _junit([report], run)


def _junit(reports: list[Path], run: Run) -> Count:
    """Counts JUnit XML files; a command that failed without a failed case counts as one."""
    count = Count()
    for report in reports:
        if not report.exists():
            continue
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            label = f"{case.get('classname')}.{case.get('name')}"
            if case.find("failure") is not None or case.find("error") is not None:
                count.failed += 1
                count.notes.append(f"failed: {label}")
            elif (skip := case.find("skipped")) is not None:
                count.skipped += 1
                count.notes.append(f"skipped: {label}: {skip.get('message') or 'no reason given'}")
            else:
                count.passed += 1
    if run.status != 0 and count.failed == 0:
        count.failed += 1
        count.notes.append(f"{run.command}: status {run.status}")
    return count


_CARGO_SUM = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")
_CARGO_CASE = re.compile(r"^test (\S+)(?: - .*?)? \.\.\. (FAILED|ignored(?:, .*)?)$")


def count_cargo(lines: list[str], status: int, command: str) -> Count:
    """Sums up what `cargo test` printed."""
    count = Count()
    for line in lines:
        if found := _CARGO_SUM.match(line):
            passed, failed, ignored = map(int, found.groups())
            count.add(Count(passed, failed, ignored))
        elif found := _CARGO_CASE.match(line):
            name, outcome = found.groups()
            count.notes.append(f"failed: {name}" if outcome == "FAILED" else f"skipped: {name}: {outcome}")
    if status != 0 and count.failed == 0:
        count.failed += 1
        count.notes.append(f"{command}: status {status}")
    return count


def _rust() -> Count:
    count = Run("rust", ["cargo", "fmt", "--all", "--check"]).as_check()
    count.add(Run("rust", ["cargo", "clippy", "-q", "--workspace", "--all-targets", "--", "-D", "warnings"]).as_check())
    count.add(_fsx())
    run = Run("rust", ["cargo", "test", "--workspace", "--no-fail-fast"])
    count.add(count_cargo(run.lines, run.status, run.command))
    return count


def _fsx() -> Count:
    """The file system exerciser, for the mount's tests; where it can't be had, they say so and go on without it."""
    root = paths.ROOT / ".cache" / "fsx"
    program = root / "bin" / "fsx"
    if why := mount_missing():
        return Count(skipped=1, notes=[f"skipped: the mount's tests: {why}"])
    if not program.exists():
        Run("rust", ["cargo", "install", "--quiet", "fsx", "--version", FSX, "--root", str(root)], quiet=True)
    if not program.exists():
        return Count(skipped=1, notes=[f"skipped: exercised_by_fsx: cargo could not install fsx {FSX}"])
    os.environ["TRUNKLINE_FSX"] = str(program)
    return Count()


def mount_missing() -> str:
    """Why the mount's tests pass themselves over here; empty when they run."""
    if os.geteuid() != 0:
        return "not root"
    try:
        os.close(os.open(FUSE, os.O_RDWR))
    except OSError as error:
        return f"{FUSE}: {error.strerror}"
    return ""


def _build() -> Count:
    return Run("build", ["make", "build"]).as_check()


def _plugin() -> Count:
    target = Path(os.environ.get("CARGO_TARGET_DIR", "target")).resolve()
    reports = paths.ROOT / "hadoop" / "plugin" / "target" / "surefire-reports"
    for old in reports.glob("TEST-*.xml"):
        old.unlink()
    native = target / "release"
    run = Run(
        "plugin", ["mvn", "-q", "-B", "-f", "hadoop/plugin/pom.xml", f"-Dnative.dir={native}", "verify"], quiet=True
    )
    return _junit(sorted(reports.glob("TEST-*.xml")), run)


def _interop() -> Count:
    report = LOGS / "interop-pytest.xml"
    report.unlink(missing_ok=True)
    return _junit([report], Run("interop", ["tests/interop/run.sh", f"--junit-xml={report}"]))


def _verbs() -> Count:
    """RDMA verbs in a guest, and the plug-in's byte streams over them; a machine that can't run either says so."""
    count = Count()
    if no_ucx := planes.ucx_missing():
        count.add(Count(skipped=1, notes=[f"skipped: verbs: the plug-in's byte streams: {no_ucx}"]))
    try:
        found = verbs.run([] if no_ucx else planes.plugin_jars())
    except guest.Unavailable as lack:
        count.add(Count(skipped=1, notes=[f"skipped: verbs: {lack}"]))
        return count
    failed = [f"failed: verbs: {check}: {why}" for check, why in found if why]
    count.add(Count(passed=len(found) - len(failed), failed=len(failed), notes=failed))
    return count


def _e2e() -> Count:
    return _pytest("e2e", "lab/tests/e2e", "e2e")


def _hadoop(plane: str = "ndn", classes: Sequence[str] = hadoop_tests.DEFAULT_CLASSES) -> Count:
    """Hadoop's own classes on a plane; what fails there is run again, beside stock TCP."""
    jars = stock.classpath("test")
    directory = hadoop_tests.directory_of(stock.NEWEST)
    results: dict[str, dict[str, hadoop_tests.Result]] = {}
    count = Count()
    with procs.Stage(directory / "logs") as stage:
        for name in hadoop_tests.find_classes(jars, list(classes)):
            short = name.rpartition(".")[2]
            say(f"hadoop: {short} on {plane}")
            result = hadoop_tests.run_class(stage, directory, jars, name, plane)
            hadoop_tests.run_again(stage, directory, jars, name, result)
            results[short] = {plane: result}
            count.add(hadoop_count(short, result))
    print(hadoop_tests.render(results, [plane]), flush=True)
    if not any(by[plane].carried for by in results.values()):
        count.add(Count(failed=1, notes=[f"failed: Hadoop's tests: no block was written over {plane}"]))
    return count


def hadoop_count(name: str, result: hadoop_tests.Result) -> Count:
    """Counts a class; a failure that stock TCP has too counts as skipped."""
    count = Count(passed=result.passed, skipped=result.skipped)
    if result.skipped:
        count.notes.append(f"skipped: {name}: {result.skipped} disabled by Hadoop itself")
    for failure in result.failures:
        match result.excused.get(failure):
            case None:
                count.add(Count(failed=1, notes=[f"failed: {name}.{failure}"]))
            case hadoop_tests.TCP_TOO:
                count.add(Count(skipped=1, notes=[f"skipped: {name}.{failure}: {hadoop_tests.TCP_TOO}"]))
            case why:
                count.add(Count(passed=1, notes=[f"{why}: {name}.{failure}"]))
    return count


STAGES: dict[str, Callable[[], Count]] = {
    "lab": _lab,
    "rust": _rust,
    "build": _build,
    "plugin": _plugin,
    "interop": _interop,
    "verbs": _verbs,
    "e2e": _e2e,
    "hadoop": _hadoop,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", help=f"stages to run, with commas: {', '.join(STAGES)} (default: all)")


def main(arguments: argparse.Namespace) -> int:
    wanted = arguments.only.split(",") if arguments.only else list(STAGES)
    for name in wanted:
        if name not in STAGES:
            raise ValueError(f"no stage {name!r}; there are {', '.join(STAGES)}")
    for old in LOGS.glob("*.log") if LOGS.exists() else []:
        old.unlink()
    total = Count()
    summary = []
    for name in wanted:
        began = time.monotonic()
        try:
            count = STAGES[name]()
        except (RuntimeError, OSError) as error:
            print(error, file=sys.stderr)
            count = Count(failed=1, notes=[f"{name}: {str(error).splitlines()[0]}"])
        total.add(count)
        summary.append(f"{name:8} {count.line()} ({time.monotonic() - began:.0f} s)")
    print()
    for note in total.notes:
        print(note)
    print("\n".join(summary))
    print(total.line())
    return 1 if total.failed else 0

"""Test cases counted: what `cargo test`, JUnit's reports and Hadoop's classes say, as one kind of sum."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from .. import hadoop_tests


@dataclass
class Count:
    """Test cases of a stage, and why some did not run or did not pass.

    `failing` and `passing` are those that have a name.
    """

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    notes: list[str] = field(default_factory=list)
    failing: list[str] = field(default_factory=list)
    passing: list[str] = field(default_factory=list)

    def add(self, other: Count) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.notes += other.notes
        self.failing += other.failing
        self.passing += other.passing

    def line(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def failed_case(label: str, why: str = "") -> Count:
    """One case that failed and can be run again by its name."""
    return Count(failed=1, notes=[f"failed: {label}: {why}" if why else f"failed: {label}"], failing=[label])


def of_command(command: str, status: int) -> Count:
    """A command that counts as one case: passed when it ends with status 0."""
    return Count(failed=1, notes=[f"failed: {command}: status {status}"]) if status else Count(passed=1)


def of_junit(reports: Iterable[Path], command: str, status: int) -> Count:
    """Counts JUnit XML files; a command that failed without a failed case counts as one.

    A case that Maven ran again, and that passed then, has passed; it is named.
    """
    count = Count()
    for report in reports:
        if not report.exists():
            continue
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            label = f"{case.get('classname')}.{case.get('name')}"
            if case.find("failure") is not None or case.find("error") is not None:
                count.add(failed_case(label))
            elif case.find("flakyFailure") is not None or case.find("flakyError") is not None:
                count.add(Count(passed=1, notes=[f"{hadoop_tests.PASSED_AGAIN}: {label}"], passing=[label]))
            elif (skip := case.find("skipped")) is not None:
                why = skip.get("message") or "no reason given"
                count.add(Count(skipped=1, notes=[f"skipped: {label}: {why}"]))
            else:
                count.add(Count(passed=1, passing=[label]))
    return _with_status(count, command, status)


_CARGO_SUM = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")
_CARGO_CASE = re.compile(r"^test (\S+)(?: - .*?)? \.\.\. (ok|FAILED|ignored(?:, .*)?)$")


def of_cargo(lines: Iterable[str], command: str, status: int) -> Count:
    """Sums up what `cargo test` printed."""
    count = Count()
    for line in lines:
        if found := _CARGO_SUM.match(line):
            passed, failed, ignored = map(int, found.groups())
            count.add(Count(passed, failed, ignored))
        elif found := _CARGO_CASE.match(line):
            name, outcome = found.groups()
            if outcome == "FAILED":  # in the sum already
                count.add(Count(notes=[f"failed: {name}"], failing=[name]))
            elif outcome == "ok":
                count.passing.append(name)
            else:
                count.notes.append(f"skipped: {name}: {outcome}")
    return _with_status(count, command, status)


def of_hadoop(name: str, result: hadoop_tests.Result) -> Count:
    """Counts a class of Hadoop's own.

    A failure that stock TCP has too counts as skipped, and one that looks for what the plane leaves out as nothing: it
    is named with its reason. A class of which nothing passed has tested nothing, whatever excuses what failed.
    """
    count = Count(passed=result.passed, skipped=result.skipped)
    if result.failed and not result.held and result.passed == 0:
        count.add(Count(failed=1, notes=[f"failed: {name}: none of {result.failed} passed"]))
    if result.skipped:
        count.notes.append(f"skipped: {name}: {result.skipped} disabled by Hadoop itself")
    for failure in result.failures:
        match result.excused.get(failure):
            case None:
                count.add(Count(failed=1, notes=[f"failed: {name}.{failure}"]))
            case hadoop_tests.TCP_TOO:
                count.add(Count(skipped=1, notes=[f"skipped: {name}.{failure}: {hadoop_tests.TCP_TOO}"]))
            case hadoop_tests.PASSED_AGAIN as why:
                count.add(Count(passed=1, notes=[f"{why}: {name}.{failure}"]))
            case why:
                count.add(Count(notes=[f"not held against {result.plane}: {name}.{failure}: {why}"]))
    return count


def _with_status(count: Count, command: str, status: int) -> Count:
    if status != 0 and count.failed == 0:
        count.add(of_command(command, status))
    return count

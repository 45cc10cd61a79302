"""The reports of JUnit's console, and what counts as a pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunkline_lab import hadoop_tests
from trunkline_lab.hadoop_tests import Result, acceptable, read_reports

REPORT = """<testsuite>
<testcase name="good()" time="1.5"/>
<testcase name="left()" time="0"><skipped/></testcase>
<testcase name="bad()" time="2"><failure message="expected 1&#10;but 2" type="x"/></testcase>
</testsuite>"""


def test_reports_are_added_up(tmp_path: Path) -> None:
    (tmp_path / "TEST-a.xml").write_text(REPORT)
    result = read_reports(tmp_path)
    assert (result.passed, result.failed, result.skipped) == (1, 1, 1)
    assert result.failures == ["bad(): expected 1"]
    assert result.seconds == 3.5


def test_a_failure_that_tcp_has_too_is_not_the_planes() -> None:
    same = {
        "T": {
            "ndn": Result(passed=1, failed=1, failures=["a(): x"], named_writes=1),
            "tcp": Result(1, 1, failures=["a(): y"]),
        }
    }
    assert acceptable(same, "ndn")
    own = {
        "T": {
            "ndn": Result(passed=1, failed=1, failures=["b(): x"], named_writes=1),
            "tcp": Result(1, 1, failures=["a(): y"]),
        }
    }
    assert not acceptable(own, "ndn")


def test_a_run_that_wrote_nothing_by_name_is_no_pass() -> None:
    assert not acceptable({"T": {"ndn": Result(passed=3)}}, "ndn")
    assert acceptable({"T": {"ndn": Result(passed=3, named_writes=1)}}, "ndn")


def test_no_test_at_all_is_no_pass() -> None:
    assert not acceptable({"T": {"tcp": Result()}}, "tcp")


def test_unknown_class_is_named() -> None:
    jars = ["/nowhere/other.jar"]
    with pytest.raises(RuntimeError, match="tests jar"):
        hadoop_tests.find_classes(jars, ["TestA"])

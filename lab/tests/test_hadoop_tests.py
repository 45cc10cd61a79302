"""The reports of JUnit's console, and what counts as a pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunkline_lab import hadoop_tests
from trunkline_lab.hadoop_tests import Result, acceptable, read_reports
from trunkline_lab.suite import hadoop_count

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
            "ndn": Result(passed=1, failed=1, failures=["a(): x"], carried=1),
            "tcp": Result(1, 1, failures=["a(): y"]),
        }
    }
    assert acceptable(same, "ndn")
    assert "1 of those that failed did so over stock TCP too" in hadoop_tests.render(same, ["ndn", "tcp"])
    own = {
        "T": {
            "ndn": Result(passed=1, failed=1, failures=["b(): x"], carried=1),
            "tcp": Result(1, 1, failures=["a(): y"]),
        }
    }
    assert not acceptable(own, "ndn")
    assert "over stock TCP too" not in hadoop_tests.render(own, ["ndn", "tcp"])


def test_a_run_whose_blocks_went_another_way_is_no_pass() -> None:
    assert not acceptable({"T": {"ndn": Result(passed=3)}}, "ndn")
    assert acceptable({"T": {"ndn": Result(passed=3, carried=1)}}, "ndn")


def test_blocks_are_counted_by_the_planes_own_counter(tmp_path: Path) -> None:
    stats = tmp_path / "stats.json"
    stats.write_text('{"named_writes": 2, "ucx_writes": 3}\n{"ucx_writes": 4}\n')
    assert [hadoop_tests.carried(plane, stats) for plane in ("tcp", "ndn", "ucx")] == [0, 2, 7]
    assert hadoop_tests.carried("ucx", tmp_path / "none") == 0


def test_no_test_at_all_is_no_pass() -> None:
    assert not acceptable({"T": {"tcp": Result()}}, "tcp")


def test_unknown_class_is_named() -> None:
    jars = ["/nowhere/other.jar"]
    with pytest.raises(RuntimeError, match="tests jar"):
        hadoop_tests.find_classes(jars, ["TestA"])


def test_who_is_to_blame_for_a_failure() -> None:
    first = Result(passed=2, failed=4, failures=["a(): x", "b(): x", "c(): x", "(class): x"], plane="ndn")
    assert first.failed_methods == ["a", "b", "c"]
    again = {
        "a": Result(failed=1, plane="tcp"),
        "b": Result(passed=1, plane="ndn"),
        "c": Result(failed=1, plane="ndn"),
    }
    count = hadoop_count("T", first, again)
    assert count.line() == "3 passed, 2 failed, 1 skipped"
    assert count.notes == [
        "skipped: T.a(): x: fails on stock TCP too",
        "passed when run again: T.b(): x",
        "failed: T.c(): x",
        "failed: T.(class): x",
    ]

"""The reports of JUnit's console, and what counts as a pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from trunkline_lab import hadoop_tests
from trunkline_lab.hadoop_tests import Result, acceptable, read_reports
from trunkline_lab.suite.count import of_hadoop

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


@pytest.mark.parametrize(
    ("failure", "method"),
    [("new(): x", "new"), ("old: y", "old"), ("(class): ran no test", ""), ("[1] some, parameters: z", "")],
)
def test_methods_that_failed_are_known_by_name_in_both_junits(failure: str, method: str) -> None:
    assert hadoop_tests.method_of(failure) == method


@pytest.mark.parametrize(("failure", "excused"), [("a(): x", True), ("b(): x", False)])
def test_a_failure_that_tcp_has_too_is_not_the_planes(failure: str, excused: bool) -> None:
    ours = Result(passed=1, failed=1, failures=[failure], carried=1)
    results = {"T": {"ndn": ours, "tcp": Result(1, 1, failures=["a(): y"])}}
    hadoop_tests.excuse_alike(results["T"], "ndn")
    assert acceptable(results, "ndn") is excused
    assert (hadoop_tests.TCP_TOO in hadoop_tests.render(results, ["ndn", "tcp"])) is excused


@pytest.mark.parametrize(
    ("tcp_fails", "plane_fails", "verdict"),
    [
        ([True], [], hadoop_tests.TCP_TOO),
        ([False, True], [True], hadoop_tests.TCP_TOO),
        ([False, False], [True, False], hadoop_tests.PASSED_AGAIN),
        ([False] * 3, [True] * 3, None),
    ],
)
def test_what_failed_is_run_again_beside_tcp(monkeypatch, tcp_fails, plane_fails, verdict) -> None:
    outcomes = {"tcp": iter(tcp_fails), "ndn": iter(plane_fails)}

    def run_class(*words: object, methods: list[str]) -> Result:
        assert methods == ["a"]
        return Result(failed=int(next(outcomes[str(words[-1])])))

    monkeypatch.setattr(hadoop_tests, "run_class", run_class)
    result = Result(failed=2, failures=["a(): x", "(class): ran no test"], plane="ndn")
    hadoop_tests.run_again(None, Path(), [], "T", result)
    assert result.excused == ({"a(): x": verdict} if verdict else {})
    assert [next(left, None) for left in outcomes.values()] == [None, None]


def test_a_run_whose_blocks_went_another_way_is_no_pass() -> None:
    assert not acceptable({"T": {"ndn": Result(passed=3)}}, "ndn")
    assert acceptable({"T": {"ndn": Result(passed=3, carried=1)}}, "ndn")


def test_blocks_are_counted_by_the_planes_own_counter(tmp_path: Path) -> None:
    stats = tmp_path / "stats.json"
    stats.write_text('{"named_writes": 2, "ucx_writes": 3}\n{"ucx_writes": 4, "mirror_reported": 5}\n')
    assert [hadoop_tests.carried(plane, stats) for plane in hadoop_tests.PLANES] == [0, 2, 7, 5]
    assert hadoop_tests.carried("ucx", tmp_path / "none") == 0


def test_no_test_at_all_is_no_pass() -> None:
    assert not acceptable({"T": {"tcp": Result()}}, "tcp")


def test_unknown_class_is_named() -> None:
    jars = ["/nowhere/other.jar"]
    with pytest.raises(RuntimeError, match="tests jar"):
        hadoop_tests.find_classes(jars, ["TestA"])


def test_how_a_failure_counts() -> None:
    excused = {"a(): x": hadoop_tests.TCP_TOO, "b(): x": hadoop_tests.PASSED_AGAIN}
    result = Result(passed=2, failed=3, failures=["a(): x", "b(): x", "c(): x"], excused=excused)
    count = of_hadoop("T", result)
    assert count.line() == "3 passed, 1 failed, 1 skipped"
    assert count.notes == [
        "skipped: T.a(): x: fails on stock TCP too",
        "passed when run again: T.b(): x",
        "failed: T.c(): x",
    ]

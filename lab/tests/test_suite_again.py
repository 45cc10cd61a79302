"""Failed cases are run once more by themselves: what passes then is named, what fails twice is a failure."""

import sys

import pytest

from trunkline_lab.suite import stages, step
from trunkline_lab.suite.again import MOST, once_more
from trunkline_lab.suite.count import Count, failed_case, of_cargo, of_junit

CASES = """
import pathlib
def test_good(): pathlib.Path("good").open("a").write("x")
def test_at_second_try():
    with pathlib.Path("tries").open("a") as tries: tries.write("x")
    assert pathlib.Path("tries").read_text() == "xx"
def test_broken(): assert "broken" == WORD
"""


@pytest.fixture
def run_pytest(monkeypatch, tmp_path):
    monkeypatch.setattr(stages, "LOGS", tmp_path)
    monkeypatch.setattr(step, "LOGS", tmp_path)
    monkeypatch.setattr(step.paths, "ROOT", tmp_path)

    def run(word):
        (tmp_path / "test_cases.py").write_text(f"WORD = {word!r}\n{CASES}")
        return stages._pytest_by("stage", [sys.executable, "-m", "pytest", "-q", str(tmp_path / "test_cases.py")])

    return run


def test_what_passes_alone_has_passed_and_is_named(run_pytest, tmp_path):
    count = run_pytest("broken")
    assert (count.passed, count.failed) == (3, 0)
    assert count.notes == ["passed when run again: test_cases.test_at_second_try"]
    assert (tmp_path / "good").read_text() == "x"  # what passed is not run again


def test_what_fails_twice_has_failed(run_pytest):
    count = run_pytest("whole")
    assert (count.passed, count.failed) == (2, 1)
    assert count.notes == ["passed when run again: test_cases.test_at_second_try", "failed: test_cases.test_broken"]


def never(names):
    raise AssertionError(names)


def test_many_failures_are_no_accident():
    count = Count()
    for number in range(MOST + 1):
        count.add(failed_case(f"case {number}"))
    assert once_more(count, never).failed == MOST + 1


def test_a_failure_without_a_name_stays_one():
    lines = ["test a ... FAILED", "test result: FAILED. 4 passed; 1 failed; 0 ignored; 0 measured"]
    assert of_cargo(lines, "cargo test", 101).failing == ["a"]
    assert once_more(of_cargo([], "cargo test", 101), never).failed == 1
    assert once_more(Count(passed=1), never) == Count(passed=1)


def test_cases_that_are_not_found_again_have_failed():
    first = failed_case("a")
    assert once_more(first, lambda names: Count()) is first
    assert once_more(first, lambda names: Count(failed=1, notes=["failed: cargo test: status 101"])).failed == 1


def test_what_maven_ran_again_has_passed_and_is_named(tmp_path):
    report = tmp_path / "TEST-a.xml"
    report.write_text(
        "<testsuite><testcase classname='A' name='late'><flakyFailure message='m'/></testcase>"
        "<testcase classname='A' name='bad'><failure/><rerunFailure/></testcase></testsuite>"
    )
    count = of_junit([report], "mvn", 1)
    assert (count.passed, count.failed) == (1, 1)
    assert count.notes == ["passed when run again: A.late", "failed: A.bad"]

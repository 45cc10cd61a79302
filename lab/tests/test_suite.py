"""The suite's stages side by side: their order, their output, their end."""

import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trunkline_lab import suite
from trunkline_lab.procs import wait_until
from trunkline_lab.suite.side_by_side import Task, run
from trunkline_lab.suite.stages import MATRIX, STAGES

ROOT = Path(__file__).parents[1]


def sh(name, script, *needs):
    return Task(name, ["sh", "-c", script], needs)


def shown(tasks, most):
    said = []
    return run(tasks, most, lambda name, line: said.append((name, line))), said


def test_lines_come_whole_with_their_stage():
    ended, said = shown([sh("a", "printf 'on'; sleep 0.1; echo e; echo two >&2; printf last"), sh("b", "echo b")], 2)
    assert [line for name, line in said if name == "a"] == ["one", "two", "last"]
    assert ("b", "b") in said
    assert all(one.well for one in ended.values())


def test_a_stage_begins_when_what_it_needs_has_ended(tmp_path):
    """Side by side with what it does not need: `second` waits for a word of `beside`, which waits for `first`."""
    first = sh("first", f"sleep 0.2; touch {tmp_path}/first")
    beside = sh("beside", f"until [ -e {tmp_path}/second ]; do sleep 0.01; done")
    second = sh("second", f"test -e {tmp_path}/first && touch {tmp_path}/second", "first", "not wanted")
    ended, _ = shown([second, beside, first], 2)
    assert all(one.well for one in ended.values())


def test_no_more_run_at_once_than_said(tmp_path):
    script = f"mkdir {tmp_path}/only && sleep 0.1 && rmdir {tmp_path}/only"
    ended, _ = shown([sh(name, script) for name in "abc"], 1)
    assert all(one.well for one in ended.values())


def test_what_lacks_a_stage_that_failed_is_not_run():
    tasks = [sh("late", "echo no", "next"), sh("bad", "exit 3"), sh("next", "echo no", "bad"), sh("other", "echo yes")]
    ended, said = shown(tasks, 1)
    assert said == [("other", "yes")]
    assert (ended["bad"].status, ended["next"].lacked, ended["late"].lacked) == (3, "bad", "next")


def test_cpu_time_of_all_processes_is_counted():
    burn = f"{sys.executable} -c 'import time\nwhile time.process_time() < 0.3: pass'"
    ended, _ = shown([sh("a", f"({burn}) & wait")], 1)
    assert ended["a"].cpu_s >= 0.3


def test_an_interrupted_suite_lets_its_stages_end_what_they_started(tmp_path):
    """Each has one SIGTERM and time; one that takes no notice is killed with all it started."""
    polite = f"trap 'sleep 0.2; touch {tmp_path}/ended; exit' TERM; touch {tmp_path}/up; while :; do sleep 0.01; done"
    deaf = f"trap '' TERM; sleep 300 & echo $! > {tmp_path}/pid; wait"
    code = (
        "from trunkline_lab import procs\nfrom trunkline_lab.suite import side_by_side as s\ns.GRACE_S = 3\n"
        f"tasks = [s.Task('polite', ['sh', '-c', {polite!r}]), s.Task('deaf', ['sh', '-c', {deaf!r}])]\n"
        "with procs.interruptible():\n    s.run(tasks, 2, print)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    pid = tmp_path / "pid"
    wait_until("both", lambda: (tmp_path / "up").exists() and pid.exists() and pid.read_text().strip() != "", 20)
    process.send_signal(signal.SIGTERM)
    assert "KeyboardInterrupt" in process.communicate(timeout=60)[1]
    assert (tmp_path / "ended").exists()
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid.read_text().strip()}").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(f"/proc/{pid.read_text().strip()}").exists()


def test_tests_that_are_told_to_end_end_what_they_started(tmp_path):
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_waits.py").write_text(
        "import pathlib, time\nimport pytest\nhere = pathlib.Path(__file__).parent\n"
        "@pytest.fixture\ndef started():\n    yield\n    (here / 'ended').touch()\n"
        "def test_waits(started):\n    (here / 'up').touch()\n    time.sleep(300)\n"
    )
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    wait_until("the test", (tmp_path / "up").exists, 60)
    process.send_signal(signal.SIGTERM)
    assert "KeyboardInterrupt" in process.communicate(timeout=60)[0]
    assert (tmp_path / "ended").exists()


def test_every_stage_comes_after_those_it_needs():
    order = [*STAGES, *MATRIX]
    for name, stage in {**STAGES, **MATRIX}.items():
        assert all(order.index(need) < order.index(name) for need in stage.needs)


def test_a_stage_that_left_no_count_is_a_failure(monkeypatch, tmp_path):
    monkeypatch.setattr(suite, "LOGS", tmp_path)
    count, _ = suite._outcome("rust", suite.Ended(-9))
    assert count.notes == ["failed: rust: ended with status -9"]
    count, _ = suite._outcome("e2e", suite.Ended(lacked="build"))
    assert count.notes == ["failed: e2e: not run, as build failed"]


def test_a_need_that_is_never_met_is_an_error():
    with pytest.raises(ValueError, match="a, b"):
        shown([sh("a", "true", "b"), sh("b", "true", "a")], 2)

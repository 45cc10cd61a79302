"""Children end with their stage, and with a lab that is killed; what they used is counted."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trunkline_lab.procs import ProcessFailed, Stage, interruptible, wait_all, wait_until


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_leaving_the_stage_ends_a_child_and_its_children(tmp_path):
    with pytest.raises(KeyboardInterrupt), Stage(tmp_path) as stage:
        child = stage.start("child", "host", ["sh", "-c", "sleep 300 & echo $!; wait"])
        wait_until("its child", lambda: child.log.read_text().strip() != "", 10, child)
        grandchild = int(child.log.read_text())
        raise KeyboardInterrupt
    wait_until("their end", lambda: not alive(child.pid) and not alive(grandchild), 5)


def test_a_child_that_ignores_sigterm_is_killed(tmp_path):
    with Stage(tmp_path) as stage:
        child = stage.start("stubborn", "host", ["sh", "-c", "trap '' TERM; echo on; while :; do sleep 0.1; done"])
        wait_until("its trap", lambda: "on" in child.log.read_text(), 10, child)
        child.stop(grace_s=0.2)
        assert not child.running()


def test_children_die_with_a_lab_that_was_killed(tmp_path):
    code = (
        "import sys, time; from pathlib import Path; from trunkline_lab.procs import Stage\n"
        f"with Stage(Path({str(tmp_path)!r})) as stage:\n"
        "    print(stage.start('c', 'h', ['sleep', '300']).pid, flush=True)\n"
        "    time.sleep(300)"
    )
    lab = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    assert lab.stdout is not None
    child = int(lab.stdout.readline())
    wait_until("the child's exec", lambda: "sleep" in Path(f"/proc/{child}/cmdline").read_text().split("\0")[0], 10)
    lab.send_signal(signal.SIGKILL)
    lab.wait()
    lab.stdout.close()
    wait_until("its end", lambda: not alive(child), 5)


def test_cpu_is_counted_while_it_runs_and_after(tmp_path):
    with Stage(tmp_path) as stage:
        burn = "import time\nwhile time.process_time() < 0.4: pass\nprint('burnt', flush=True); time.sleep(300)"
        child = stage.start("burner", "host", [sys.executable, "-c", burn])
        wait_until("the burning", lambda: "burnt" in child.log.read_text(), 30, child)
        running = child.cpu_s()
        child.kill()
        assert running >= 0.38
        assert child.cpu_s() >= running - 0.02
        assert stage.cpu_s() == {"host": child.cpu_s()}


def test_a_signal_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_failure_shows_the_end_of_the_log(tmp_path):
    with Stage(tmp_path) as stage, pytest.raises(ProcessFailed, match=r"status 3(.|\n)*out of luck"):
        stage.run("unlucky", "host", ["sh", "-c", "echo out of luck; exit 3"], timeout_s=10)


def test_waiting_ends_when_what_is_waited_for_has_died(tmp_path):
    with Stage(tmp_path) as stage:
        child = stage.start("short", "host", ["true"])
        began = time.monotonic()
        with pytest.raises(ProcessFailed, match="short ended with status 0"):
            wait_until("a wonder", lambda: False, 30, child)
        assert time.monotonic() - began < 10


def test_of_several_each_is_timed_by_itself(tmp_path):
    with Stage(tmp_path) as stage:
        slow = stage.start("slow", "host", ["sh", "-c", f"until [ -e {tmp_path}/go ]; do sleep 0.01; done"])
        fast = stage.start("fast", "host", ["true"])
        wait_until("the fast one's end", lambda: not fast.running(), 10)
        (tmp_path / "go").touch()
        wait_all([slow, fast], 10)
        assert fast.wall_s is not None and slow.wall_s is not None and fast.wall_s < slow.wall_s


def test_of_several_one_that_fails_is_named_at_once(tmp_path):
    with Stage(tmp_path) as stage:
        waiting = stage.start("waiting", "host", ["sleep", "300"])
        failing = stage.start("failing", "host", ["sh", "-c", "echo why; exit 3"])
        with pytest.raises(ProcessFailed, match=r"failing failed.*\n.*why"):
            wait_all([waiting, failing], 60)
        with pytest.raises(ProcessFailed, match="waiting did not end within 0 s"):
            wait_all([waiting], 0)

"""Processes that never outlive their experiment, and what CPU each of them used.

Every child leads a session of its own (so that it is ended with all it started) and asks the kernel to be killed when
its parent dies (so that a crash of the lab leaves nothing behind). A `Stage` owns them and ends them in reverse order.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class ProcessFailed(RuntimeError):
    """A process ended when it should not have, or with a status it should not have."""


# In front of a command: the kernel kills it when the thread that started it ends, however that comes about.
DIE_WITH_PARENT = ["setpriv", "--pdeathsig", "KILL", "--"]


def end_group(popen: subprocess.Popen[Any], grace_s: float = 10.0) -> None:
    """Ends a child that leads a session, and all it started: SIGTERM, then SIGKILL after `grace_s`."""
    end_groups([popen], grace_s)


def end_groups(popens: Sequence[subprocess.Popen[Any]], grace_s: float) -> None:
    """The same for several, which have the grace together."""
    for popen in popens:
        _kill_group(popen, signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    for popen in popens:
        with contextlib.suppress(subprocess.TimeoutExpired):
            popen.wait(max(0.0, deadline - time.monotonic()))
        _kill_group(popen, signal.SIGKILL)
        popen.wait()


def _kill_group(popen: subprocess.Popen[Any], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(popen.pid, number)


def tail(path: Path, lines: int = 20) -> str:
    """The last `lines` lines of a log, for an error message."""
    if not path.exists():
        return "(no log)"
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])


def cpu_of(pid: int) -> float:
    """User plus system CPU seconds of a living process so far, of all its threads and reaped children.

    Its own by its clock, in nanoseconds; its children's by ticks of 10 ms.
    """
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    clock = ~pid << 3 | 2  # as clock_getcpuclockid(3) makes it
    return time.clock_gettime(clock) + sum(int(t) for t in fields[13:15]) / _TICKS_PER_S


@dataclass
class Process:
    """One child: `host` is the emulated host it stands for, `log` the file with its stdout and stderr."""

    name: str
    host: str
    popen: subprocess.Popen[bytes]
    log: Path
    started: float
    wall_s: float | None = None
    _cpu_s: float | None = None

    @property
    def pid(self) -> int:
        return self.popen.pid

    def running(self) -> bool:
        """Whether it is still alive; reaps it (and keeps its CPU time) when it is not."""
        if self.popen.returncode is not None:
            return False
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        if pid == 0:
            return True
        self._reaped(status, usage.ru_utime + usage.ru_stime)
        return False

    def wait(self, timeout_s: float) -> int:
        """Waits for the end and returns the exit status; raises ProcessFailed when `timeout_s` passes first."""
        deadline = time.monotonic() + timeout_s
        pause = 0.002
        while self.running():
            if time.monotonic() > deadline:
                raise ProcessFailed(
                    f"{self.name} did not end within {timeout_s:.0f} s; its log ends:\n{tail(self.log)}"
                )
            time.sleep(pause)
            pause = min(pause * 1.5, 0.02)
        assert self.popen.returncode is not None
        return self.popen.returncode

    def _reaped(self, status: int, cpu_s: float) -> None:
        self.popen.returncode = os.waitstatus_to_exitcode(status)
        self.wall_s = time.monotonic() - self.started
        self._cpu_s = cpu_s

    def cpu_s(self) -> float:
        """User plus system CPU seconds so far, of all its threads and reaped children."""
        if self.running():
            with contextlib.suppress(OSError):
                return cpu_of(self.pid)
        return self._cpu_s or 0.0

    def rss_bytes(self) -> int:
        """Memory resident now; 0 once it has ended."""
        with contextlib.suppress(OSError):
            return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        return 0

    def signal(self, number: int) -> None:
        """Sends a signal to the process alone (not to its children)."""
        if self.running():
            os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL to it and all it started, then reap: the fault that a power cut is."""
        self._signal_group(signal.SIGKILL)
        self.wait(30)

    def _signal_group(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def stop(self, grace_s: float = 5.0) -> None:
        """SIGTERM, then SIGKILL after `grace_s` seconds; whatever it left in its group is killed too."""
        if self.running():
            self.signal(signal.SIGTERM)
            deadline = time.monotonic() + grace_s
            while self.running() and time.monotonic() < deadline:
                time.sleep(0.01)
        self._signal_group(signal.SIGKILL)
        if self.running():
            self.wait(30)


def in_place(_host: str, command: list[str]) -> list[str]:
    """A command that stands for a host without any doing."""
    return command


@dataclass
class Stage:
    """Owns processes; leaving it ends them all, whatever the reason.

    `on_host` is what a command becomes on an emulated host. With `outlive`, processes live on after the lab; whoever
    sets it sees to their end.
    """

    logs: Path
    processes: list[Process] = field(default_factory=list)
    on_host: Callable[[str, list[str]], list[str]] = in_place
    outlive: bool = False

    def __enter__(self) -> Stage:
        self.logs.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.outlive and kind is None:
            return
        for process in reversed(self.processes):
            process.signal(signal.SIGTERM)
        for process in reversed(self.processes):
            process.stop()

    def start(
        self,
        name: str,
        host: str,
        command: list[str],
        *,
        env: dict[str, str] | None = None,
        cwd: Path | None = None,
        stdin: int = subprocess.DEVNULL,
        stdout: int | None = None,
    ) -> Process:
        """Starts `command` as `name` on the emulated host `host`.

        Its output goes to `<logs>/<name>.log`; `stdin` and `stdout` may be subprocess.PIPE instead.
        """
        log = self.logs / f"{name}.log"
        with log.open("ab") as sink:
            popen = subprocess.Popen(
                [*([] if self.outlive else DIE_WITH_PARENT), *self.on_host(host, command)],
                stdin=stdin,
                stdout=sink if stdout is None else stdout,
                stderr=sink,
                env=None if env is None else {**os.environ, **env},
                cwd=cwd,
                start_new_session=True,
            )
        process = Process(name, host, popen, log, time.monotonic())
        self.processes.append(process)
        return process

    def run(self, name: str, host: str, command: list[str], *, timeout_s: float, **options: object) -> Process:
        """Starts `command` and waits for it to end well; raises ProcessFailed with the end of its log otherwise."""
        process = self.start(name, host, command, **options)  # type: ignore[arg-type]
        status = process.wait(timeout_s)
        if status != 0:
            raise ProcessFailed(f"{name} ended with status {status}; {process.log} ends:\n{tail(process.log)}")
        return process

    def cpu_s(self) -> dict[str, float]:
        """CPU seconds by emulated host, ended processes included."""
        total: dict[str, float] = {}
        for process in self.processes:
            total[process.host] = total.get(process.host, 0.0) + process.cpu_s()
        return total

    def host_of_pid(self, pid: int) -> str | None:
        """The emulated host that a live or ended process of this stage stands for."""
        for process in self.processes:
            if process.pid == pid:
                return process.host
        return None


def wait_until(what: str, ready: Callable[[], bool], timeout_s: float, *alive: Process, pause_s: float = 0.05) -> None:
    """Waits for `ready()`; raises ProcessFailed when `timeout_s` passes or a process of `alive` ends before."""
    deadline = time.monotonic() + timeout_s
    while not ready():
        for process in alive:
            if not process.running():
                raise ProcessFailed(
                    f"{process.name} ended with status {process.popen.returncode} while waiting for {what}; "
                    f"{process.log} ends:\n{tail(process.log)}"
                )
        if time.monotonic() > deadline:
            logs = "\n".join(f"--- {p.log}\n{tail(p.log)}" for p in alive)
            raise ProcessFailed(f"{what}: not so after {timeout_s:.0f} s\n{logs}")
        time.sleep(pause_s)


def wait_all(processes: Sequence[Process], timeout_s: float) -> None:
    """Waits for all to end well, each timed by itself; raises ProcessFailed for the first that does not."""
    deadline = time.monotonic() + timeout_s
    left = list(processes)
    while left:
        for process in [process for process in left if not process.running()]:
            if process.popen.returncode != 0:
                raise ProcessFailed(f"{process.name} failed; {process.log} ends:\n{tail(process.log)}")
            left.remove(process)
        if left and time.monotonic() > deadline:
            raise ProcessFailed(f"{left[0].name} did not end within {timeout_s:.0f} s; {left[0].log} tells more")
        time.sleep(0.01)


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Turns SIGTERM and SIGHUP into KeyboardInterrupt, so that `with` blocks end what they started.

    A signal that is ignored stays so, as SIGHUP is below nohup.
    """

    def interrupt(number: int, _frame: object) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    heeded = [n for n in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(n) is not signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

"""Commands side by side, each after those that it needs, their output told apart line by line."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO

from .. import procs

GRACE_S = 30.0  # for a stage to end what it started, which has a grace of its own


@dataclass(frozen=True)
class Task:
    """A command that waits until the tasks `needs` have ended well."""

    name: str
    command: list[str]
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ended:
    """How a task ended: its exit status, or the need that failed so that it never began."""

    status: int = 0
    wall_s: float = 0.0
    cpu_s: float = 0.0  # of all its processes
    lacked: str = ""

    @property
    def well(self) -> bool:
        return self.status == 0 and not self.lacked


class _Running:
    def __init__(self, task: Task) -> None:
        self.task, self.began, self._rest = task, time.monotonic(), b""
        self.popen = subprocess.Popen(
            [*procs.DIE_WITH_PARENT, *task.command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert self.popen.stdout is not None
        self.output: IO[bytes] = self.popen.stdout

    def lines(self) -> list[str] | None:
        """The lines that have become whole, at the end the last one too; None when there is nothing more to come."""
        chunk = os.read(self.output.fileno(), 1 << 16)
        if not chunk and not self._rest:
            return None
        *whole, self._rest = (self._rest + chunk).split(b"\n") if chunk else (self._rest, b"")
        return [line.decode(errors="replace") for line in whole]

    def end(self) -> Ended:
        self.output.close()
        _, status, used = os.wait4(self.popen.pid, 0)
        self.popen.returncode = os.waitstatus_to_exitcode(status)
        return Ended(self.popen.returncode, time.monotonic() - self.began, used.ru_utime + used.ru_stime)


def run(tasks: Sequence[Task], most: int, show: Callable[[str, str], None]) -> dict[str, Ended]:
    """Runs all tasks, `most` of them at once, and `show`s each line with its task's name.

    The first that may begin does, in the order of `tasks`; what is needed but is no task here counts as done. Left by
    an exception, it ends what runs.
    """
    names = {task.name for task in tasks}
    waiting, ended = list(tasks), dict[str, Ended]()
    with selectors.DefaultSelector() as selector:
        running: list[_Running] = []
        try:
            while waiting or running:
                for task in list(waiting):
                    needs = [ended.get(need) for need in task.needs if need in names]
                    lacked = [need for need in task.needs if need in ended and not ended[need].well]
                    if lacked:
                        waiting.remove(task)
                        ended[task.name] = Ended(lacked=lacked[0])
                        break  # others may lack this one
                    if all(needs) and len(running) < most:
                        waiting.remove(task)
                        running.append(_Running(task))
                        selector.register(running[-1].output, selectors.EVENT_READ, running[-1])
                else:
                    if waiting and not running:
                        raise ValueError(f"needs that no order meets: {', '.join(task.name for task in waiting)}")
                    for key, _ in selector.select():
                        one: _Running = key.data
                        lines = one.lines()
                        for line in lines or []:
                            show(one.task.name, line)
                        if lines is None:
                            selector.unregister(one.output)
                            running.remove(one)
                            ended[one.task.name] = one.end()
        except BaseException:
            procs.end_groups([one.popen for one in running], GRACE_S)
            raise
    return ended

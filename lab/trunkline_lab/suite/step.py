"""One command of a stage: shown as it comes, kept for counting, timed."""

from __future__ import annotations

import resource
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from .. import paths, procs
from ..say import say
from .count import Count, of_command

LOGS = paths.OUT / "test"
QUIET_TAIL = 80


@dataclass(frozen=True)
class Took:
    """What a stage or a step of one took: seconds by the clock, and CPU seconds of all its processes."""

    name: str
    wall_s: float
    cpu_s: float


class Step:
    """A command that has ended: its output in `lines`, its exit status in `status`.

    `quiet` keeps the output in the stage's log alone and shows its end when the command fails. `gives_way` runs it
    with a low priority: a compiler takes what time the tests beside it leave. What a named step took stands in `took`.
    """

    took: list[Took] = []  # noqa: RUF012  of this process, which is one stage

    def __init__(
        self, stage: str, command: list[str], *, name: str = "", quiet: bool = False, gives_way: bool = False
    ) -> None:
        shown = " ".join(Path(word).name if word.startswith("/") else word for word in command)
        say(f"{stage}: {shown}")
        LOGS.mkdir(parents=True, exist_ok=True)
        began, cpu = time.monotonic(), _cpu_s()
        lines: list[str] = []
        with (
            subprocess.Popen(
                [*procs.DIE_WITH_PARENT, *(["nice", "-n", "10"] if gives_way else []), *command],
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
        if name:
            self.took.append(Took(name, time.monotonic() - began, _cpu_s() - cpu))
        if quiet and self.status:
            print("\n".join(f"  {line}" for line in lines[-QUIET_TAIL:]), flush=True)

    def as_check(self) -> Count:
        """The command as one case: passed when it ended with status 0."""
        return of_command(self.command, self.status)


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime

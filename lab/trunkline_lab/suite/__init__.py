"""`make test`: every stage after those it needs, two or three side by side, with one count and the minutes at the end.

A stage that fails stops only those that need it. The last line is `N passed, N failed, N skipped` over all of them.
Each line of output begins with its stage; out/test/<stage>.log has a stage's own alone.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from .. import fuzz, report
from . import attacks
from .count import Count
from .side_by_side import Ended, Task, run
from .stages import MATRIX, STAGES
from .step import LOGS, Step, Took

EVERY = {**STAGES, **MATRIX}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", help=f"stages to run, with commas: {', '.join(EVERY)}")
    parser.add_argument("--all", action="store_true", help="the long matrices too")
    parser.add_argument("--stage", help=argparse.SUPPRESS)  # one stage, in the process that was started for it


def main(arguments: argparse.Namespace) -> int:
    if arguments.stage:
        return _one(arguments.stage)
    wanted = arguments.only.split(",") if arguments.only else list(EVERY if arguments.all else STAGES)
    for name in wanted:
        if name not in EVERY:
            raise ValueError(f"no stage {name!r}; there are {', '.join(EVERY)}")
    LOGS.mkdir(parents=True, exist_ok=True)
    for name in wanted:
        for old in (LOGS / f"{name}.log", _said(name)):
            old.unlink(missing_ok=True)
    began = time.monotonic()
    lab = [sys.executable, "-u", "-m", "trunkline_lab", "test", "--stage"]
    tasks = [Task(name, [*lab, name], EVERY[name].needs) for name in EVERY if name in wanted]
    width = max(map(len, wanted))
    ended = run(tasks, _at_once(), lambda name, line: print(f"{name:{width}} | {line}", flush=True))
    total = Count()
    rows = [["", "minutes", "CPU minutes", "passed", "failed", "skipped"]]
    for task in tasks:
        count, steps = _outcome(task.name, ended[task.name])
        total.add(count)
        rows.append(_row(Took(task.name, ended[task.name].wall_s, ended[task.name].cpu_s), count))
        rows += [_row(Took(f"  {step.name}", step.wall_s, step.cpu_s)) for step in steps]
    cpu_s = sum(one.cpu_s for one in ended.values())
    rows.append(_row(Took("in all", time.monotonic() - began, cpu_s), total))
    notes = [*attacks.report(total.passing), *total.notes, *_left_out(wanted)]
    print("\n" + "\n".join([*notes, "", report.table(rows), "", total.line()]))
    return 1 if total.failed else 0


def _left_out(wanted: Sequence[str]) -> list[str]:
    """What a run of all but the long matrices leaves to them."""
    if set(wanted) != set(STAGES):
        return []
    targets = len(fuzz.targets()) + len(fuzz.java_targets())
    return [
        f"left to make test-all: {', '.join(MATRIX)}",
        f"fuzz: {targets} targets, a minute of each by make test ONLY=fuzz",
    ]


def _at_once() -> int:
    """Stages side by side: most of them wait as much as they compute."""
    return 2 if (os.cpu_count() or 1) < 4 else 3


def _row(took: Took, count: Count | None = None) -> list[str]:
    numbers = [str(number) for number in (count.passed, count.failed, count.skipped)] if count else []
    return [took.name, f"{took.wall_s / 60:.1f}", f"{took.cpu_s / 60:.1f}", *numbers]


def _said(name: str) -> Path:
    """Where a stage's process leaves its count and steps for the one that started it."""
    return LOGS / f"{name}.json"


def _one(name: str) -> int:
    """Runs a stage in this process."""
    try:
        count = EVERY[name].work()
    except (RuntimeError, OSError) as error:
        print(error, file=sys.stderr)
        count = Count(failed=1, notes=[f"failed: {name}: {str(error).splitlines()[0]}"])
    document = {"count": asdict(count), "steps": [asdict(step) for step in Step.took]}
    _said(name).write_text(json.dumps(document, indent=2) + "\n")
    return 1 if count.failed else 0


def _outcome(name: str, ended: Ended) -> tuple[Count, list[Took]]:
    """What a stage counted, and its steps."""
    if ended.lacked:
        return Count(failed=1, notes=[f"failed: {name}: not run, as {ended.lacked} failed"]), []
    if not _said(name).exists():
        return Count(failed=1, notes=[f"failed: {name}: ended with status {ended.status}"]), []
    document = json.loads(_said(name).read_text())
    return Count(**document["count"]), [Took(**step) for step in document["steps"]]

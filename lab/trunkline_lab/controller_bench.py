"""The OpenFlow controller's figures: its benches run in the controller's room, each prints a JSON line a figure."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

from . import paths, venv
from .figures import Figure
from .say import say

CHANGES_FOR_EACH_RUN = 40  # of a policy; p99 is of all of them
SCALE_PREFIXES = ("controller.2000hosts.", "controller.flow_mods")
APPLY_PREFIX = "controller.apply."
ARMED_PREFIX = "mirror.armed."
BLOCKS_FOR_EACH_RUN = 200  # whose mirrors are armed; p99 is of all of them
GOALS = {
    "controller.apply.p99_ms": 100.0,
    "controller.flow_mods_per_s": 1000.0,
    "controller.2000hosts.rss_mib": 200.0,
    "controller.2000hosts.converge_s": 5.0,
}


def measure(runs: int, wanted: str) -> Iterator[Figure]:
    """Convergence, memory and changes against many small switches; a policy's way to the wire with real ones."""
    if any(prefix.startswith(wanted) or wanted.startswith(prefix) for prefix in SCALE_PREFIXES):
        yield from _run("scale.py", [], 1)
    if APPLY_PREFIX.startswith(wanted) or wanted.startswith(APPLY_PREFIX):
        changes = CHANGES_FOR_EACH_RUN * runs
        yield from _run("apply.py", ["--changes", str(changes)], changes)


def arming(runs: int) -> Iterator[Figure]:
    """How long a pipeline's mirror takes from its last hop's announcement until all switches have it."""
    blocks = BLOCKS_FOR_EACH_RUN * runs
    yield from _run("mirror.py", ["--blocks", str(blocks)], blocks)


def _run(bench: str, arguments: list[str], runs: int) -> Iterator[Figure]:
    say(f"controller: {bench} {' '.join(arguments)}")
    command = [venv.tool("python"), str(paths.CONTROLLER / "bench" / bench), *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{bench} ended with status {done.returncode}")
    for line in map(json.loads, done.stdout.splitlines()):
        goal = GOALS.get(line["name"])
        yield Figure(line["name"], line["value"], line["unit"], "goal" if goal else "", goal, runs)

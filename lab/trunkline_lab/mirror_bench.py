"""What mirrored replication's eBPF program costs: its own test of that prints a line of JSON for each figure."""

from __future__ import annotations

import json
import statistics
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator

from . import paths
from .figures import Figure
from .say import say
from .suite.stages import mirror_missing

PREFIX = "mirror.bpf."
GOALS = {"mirror.bpf.ns_per_segment": 300.0}
COSTS = ["cargo", "test", "-q", "--release", "-p", "trunkline-mirror", "--test", "program", "costs", "--"]


def measure(runs: int) -> Iterator[Figure]:
    """Nanoseconds of a segment, by its kind: of mirrored connections, and of others."""
    if why := mirror_missing():
        say(f"mirror.bpf: not measured: {why}")
        return
    found: dict[str, list[float]] = defaultdict(list)
    for number in range(1, runs + 1):
        say(f"mirror: what the eBPF program costs, run {number} of {runs}")
        done = subprocess.run(
            [*COSTS, "--ignored", "--nocapture"],
            cwd=paths.ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(COSTS)} ended with status {done.returncode}")
        for name, value in costs(done.stdout.splitlines()):
            found[name].append(value)
    for name, values in found.items():
        goal = GOALS.get(name)
        yield Figure(name, statistics.median(values), "ns", "goal" if goal else "", goal, runs)


def costs(lines: Iterable[str]) -> Iterator[tuple[str, float]]:
    """The figures among what the test prints."""
    for line in lines:
        if line.startswith("{"):
            figure = json.loads(line)
            yield figure["name"], figure["value"]

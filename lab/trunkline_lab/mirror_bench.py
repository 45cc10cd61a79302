"""What mirrored replication costs: a segment of its eBPF program, of which its own test prints a line of JSON for each
figure, and a block of its set-up, which an experiment of the lab measures on HDFS.
"""

from __future__ import annotations

import json
import statistics
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from . import paths
from .figures import Figure
from .say import say
from .suite.stages import mirror_missing

PREFIX = "mirror.bpf."
SETUP_PREFIXES = ("mirror.arm.", "mirror.setup.")
SETUP = "mr-setup"  # the experiment; it needs what the lab installs, and is a process of its own
SETUP_FIGURES = {"set-up": "mirror.setup", "a header is held to be reported": "mirror.arm"}
SETUP_PROGRAMS = "the eBPF programs, a frame"
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


def setup() -> Iterator[Figure]:
    """How long DataNodes hold a block's header to report it, and how long its set-up takes beside stock TCP's."""
    if why := mirror_missing():
        say(f"mirror.arm: not measured: {why}")
        return
    done = subprocess.run([str(paths.LAB / "lab"), "run", SETUP], stdin=subprocess.DEVNULL, check=False)
    if done.returncode not in (0, 1):  # 1: a goal is missed
        raise RuntimeError(f"lab run {SETUP} ended with status {done.returncode}")
    yield from of_setup(json.loads((paths.OUT / "lab" / f"{SETUP}.json").read_text()))


def of_setup(document: dict[str, Any]) -> Iterator[Figure]:
    """The figures of the experiment's document."""
    rows = {row["what"]: row for row in document["rows"]}
    if programs := rows.get(SETUP_PROGRAMS):
        yield Figure("mirror.setup.bpf_ns_per_frame", programs["ours"], "ns", "", None, document["blocks"])
    for what, row in rows.items():
        said, _, name = what.rpartition(", ")
        if said not in SETUP_FIGURES:
            continue
        figure = f"{SETUP_FIGURES[said]}.{ {'median': 'p50'}.get(name, name) }_ms"
        peer, value = ("stock TCP, same run", row["tcp"]) if row["tcp"] is not None else ("", None)
        if wanted := rows.get(f"goal: {what}"):
            peer, value = "goal", wanted["limit"]
        yield Figure(figure, row["ours"], "ms", peer, value, document["blocks"])


def costs(lines: Iterable[str]) -> Iterator[tuple[str, float]]:
    """The figures among what the test prints."""
    for line in lines:
        if line.startswith("{"):
            figure = json.loads(line)
            yield figure["name"], figure["value"]

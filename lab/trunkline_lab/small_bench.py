"""Operations of 100 bytes by name beside stock TCP: a flush, a file, a read at a place (lab/hdfs/SmallOperations.java).

What they cost is round trips and not bytes. Each run is a client of its own, by turns.
"""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack

from . import paths, planes, transfer
from .cluster import Properties, generic
from .figures import Figure
from .procs import Process
from .say import say

PREFIX = "hdfs.small."
PROGRAM = paths.LAB / "hdfs" / "SmallOperations.java"
REPLICATION = DATANODES = 3
BYTES = 100
COUNTS = {"hflush": 4000, "file": 100, "pread": 1000}
WARM_UPS = 6  # not counted; the DataNodes compile in them
_LINE = re.compile(r"^micros (\w+) (\d+) (\d+)$", re.M)


def measure(runs: int) -> Iterator[Figure]:
    """Medians and 99th percentiles of the operations, medians over the runs.

    Stock TCP's clients come twice, as they are and with the packets and buffers of the properties for named data: a
    large packet's buffer costs a flush more than the flush.
    """
    cases: dict[str, tuple[str, Properties]] = {
        "tcp": ("tcp", {}),
        "tcp sized": ("tcp", planes.tuned_alike("ndn")),
        "ndn": ("ndn", {}),
    }
    took: dict[tuple[str, str], list[float]] = defaultdict(list)
    with ExitStack() as stack:
        rigs = {
            plane: stack.enter_context(
                transfer.rig(plane, paths.OUT / "bench" / f"small-{plane}", datanodes=DATANODES, cache_bytes=256 << 20)
            )
            for plane in ("tcp", "ndn")
        }
        for number in range(1 - WARM_UPS, runs + 1):
            labels = list(cases)
            for turn in range(len(labels)):  # each is first as often as last
                label = labels[(turn + number) % len(labels)]
                plane, properties = cases[label]
                say(f"hdfs.small {label}: {'warm-up' if number < 1 else f'run {number} of {runs}'}")
                found = _run(rigs[plane], f"/run-{number}-{label.replace(' ', '-')}", properties)
                if number > 0:
                    for what, micros in found.items():
                        took[label, what].append(micros)

    def median(label: str, what: str) -> float:
        return statistics.median(took[label, what])

    for kind in COUNTS:
        for percentile in ("p50", "p99"):
            what = f"{kind}.{percentile}"
            ours, theirs, sized = (median(label, what) for label in ("ndn", "tcp", "tcp sized"))
            yield Figure(f"{PREFIX}{what}.ndn_over_tcp", ours / theirs, "ratio", "stock TCP, same run", 1.0, runs)
            yield Figure(f"{PREFIX}{what}.ndn", ours, "us", "stock TCP, same run", theirs, runs)
            peer = "stock TCP, packets and buffers as large"
            yield Figure(f"{PREFIX}{what}.same_sizes.ndn", ours, "us", peer, sized, runs)


def _run(rig: transfer.Rig, directory: str, properties: Properties) -> dict[str, float]:
    """One client's operations; raises RuntimeError where named data had no part in them."""
    processes: list[Process] = []

    def work() -> Process:
        options = generic({"dfs.replication": str(REPLICATION), **properties})
        counts = [f"{kind}={count}" for kind, count in COUNTS.items()]
        processes.append(rig.cluster.client(str(PROGRAM), *options, directory, str(BYTES), *counts, name="small"))
        return processes[0]

    cost = rig.measure(work)
    if rig.plane == "ndn":
        if cost.fallbacks():
            raise RuntimeError(f"hdfs.small: not all of it went by name: {cost.fallbacks()}")
        for counter, kind in (("named_writes", "file"), ("named_reads", "pread")):
            if cost.client(counter) < COUNTS[kind]:
                raise RuntimeError(f"hdfs.small: {counter} of the client: {cost.client(counter)}")
    return percentiles(processes[0].log.read_text(errors="replace"))


def percentiles(log: str) -> dict[str, float]:
    """Microseconds that a client printed, by kind and percentile."""
    found = {}
    for kind, p50, p99 in _LINE.findall(log):
        found |= {f"{kind}.p50": float(p50), f"{kind}.p99": float(p99)}
    missing = [kind for kind in COUNTS if f"{kind}.p50" not in found]
    if missing:
        raise RuntimeError(f"hdfs.small: the client printed nothing of {', '.join(missing)}")
    return found

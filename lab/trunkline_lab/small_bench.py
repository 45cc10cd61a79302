"""Operations of 100 bytes by name beside stock TCP: a flush, a file, a read at a place (lab/hdfs/SmallOperations.java).

What they cost is round trips and not bytes. Each run is a client of its own, by turns.
"""

from __future__ import annotations

import re
import statistics
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack

from . import paths, transfer
from .figures import Figure
from .procs import Process
from .say import say

PREFIX = "hdfs.small."
PROGRAM = paths.LAB / "hdfs" / "SmallOperations.java"
PLANES = ("tcp", "ndn")
DATANODES = 3
BYTES, COUNT = 100, 1000
KINDS = ("hflush", "file", "pread")
WARM_UPS = 2  # not counted; the DataNodes compile in them
_LINE = re.compile(r"^micros (\w+) (\d+) (\d+)$", re.M)


def measure(runs: int) -> Iterator[Figure]:
    """Medians and 99th percentiles of the operations, medians over the runs."""
    took: dict[tuple[str, str], list[float]] = defaultdict(list)
    with ExitStack() as stack:
        rigs = {
            plane: stack.enter_context(
                transfer.rig(plane, paths.OUT / "bench" / f"small-{plane}", datanodes=DATANODES, cache_bytes=256 << 20)
            )
            for plane in PLANES
        }
        for number in range(1 - WARM_UPS, runs + 1):
            for plane in PLANES[:: 1 if number % 2 else -1]:
                say(f"hdfs.small {plane}: {'warm-up' if number < 1 else f'run {number} of {runs}'}")
                found = _run(rigs[plane], f"/run-{number}")
                if number > 0:
                    for what, micros in found.items():
                        took[plane, what].append(micros)
    for kind in KINDS:
        for percentile in ("p50", "p99"):
            what = f"{kind}.{percentile}"
            theirs, ours = (statistics.median(took[plane, what]) for plane in PLANES)
            yield Figure(f"{PREFIX}{what}.ndn_over_tcp", ours / theirs, "ratio", "stock TCP, same run", 1.0, runs)
            yield Figure(f"{PREFIX}{what}.ndn_us", ours, "us", "stock TCP, same run", theirs, runs)


def _run(rig: transfer.Rig, directory: str) -> dict[str, float]:
    """One client's operations; raises RuntimeError where named data had no part in them."""
    processes: list[Process] = []

    def work() -> Process:
        arguments = ["-D", "dfs.replication=3", directory, str(BYTES), str(COUNT)]
        processes.append(rig.cluster.client(str(PROGRAM), *arguments, name="small"))
        return processes[0]

    cost = rig.measure(work)
    if rig.plane == "ndn":
        if cost.fallbacks():
            raise RuntimeError(f"hdfs.small: not all of it went by name: {cost.fallbacks()}")
        for counter in ("named_writes", "named_reads"):
            if cost.client(counter) < COUNT:
                raise RuntimeError(f"hdfs.small: {counter} of the client: {cost.client(counter)}")
    return percentiles(processes[0].log.read_text(errors="replace"))


def percentiles(log: str) -> dict[str, float]:
    """Microseconds that a client printed, by kind and percentile."""
    found = {}
    for kind, p50, p99 in _LINE.findall(log):
        found |= {f"{kind}.p50": float(p50), f"{kind}.p99": float(p99)}
    missing = [kind for kind in KINDS if f"{kind}.p50" not in found]
    if missing:
        raise RuntimeError(f"hdfs.small: the client printed nothing of {', '.join(missing)}")
    return found

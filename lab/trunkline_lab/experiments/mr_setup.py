"""What reporting a pipeline and arming its mirror add to the set-up of a block, beside stock TCP's set-up."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from .. import planes
from ..net import topology_file
from ..say import say
from . import mirrored
from .mirrored import goal
from .options import Options
from .result import Result, Row

NAME = "mr-setup"
ABOUT = "the set-up of 400 blocks at scale 1, 3 replicas, and for how long DataNodes hold headers to report them"
BLOCKS, WARM_UPS = 400, 100  # those don't count: JVMs compile in them
BLOCK_BYTES = 2 << 20
REPLICATION = 3
WRITER = "h7"
GOAL_HELD_MS = 2.0
HELD = {"median": "mirror_held_us_p50", "p99": "mirror_held_us_p99"}


def run(options: Options) -> Result:
    """Both planes, one after the other."""
    blocks = max(1, int(BLOCKS * options.scale))
    result = Result(NAME, ABOUT, headings={"limit": "at most"}, detail={"blocks": blocks})
    setups, held = {}, {}
    for plane in mirrored.PLANES:
        setups[plane], held = measure(options, plane, blocks, result)
    mirrored.right(result, "each last block is right, and mirrored")
    compare(result, setups["tcp"], setups[mirrored.MIRROR], held)
    result.notes.append(
        f"{blocks} blocks of {BLOCK_BYTES >> 20} MiB on each plane, after {WARM_UPS}. The set-up is from the file's "
        "creation until all replicas have acknowledged the first packet. No write waits for the controller: where it, "
        "agents, DataNodes and client share these processors, as here, each takes from the others, which is in the "
        "set-up's difference; what DataNodes hold headers for is of the slowest one"
    )
    return result


def measure(options: Options, plane: str, blocks: int, result: Result) -> tuple[list[float], dict[str, float]]:
    """Seconds of each block's set-up, and milliseconds for which the slowest DataNode held headers."""
    topology = topology_file.named(options.topology or "mr-star")
    writer = WRITER if options.topology is None else topology.roles.clients[0]
    with mirrored.bench(options, NAME, plane, topology, BLOCK_BYTES, result=result, writers=(writer,)) as bench:
        found = []
        for number in range(WARM_UPS + blocks):
            target = f"/block-{number}"
            found.append(bench.writers[writer].write(target, REPLICATION).setup_s)
            bench.writers[writer].remove(target)
        bench.write(REPLICATION)  # is checked
        held = slowest([record for host in topology.roles.datanodes for record in _stats(bench, host)])
    say(f"{plane}: {blocks} blocks, set-up {1000 * statistics.median(found[WARM_UPS:]):.1f} ms in the median")
    return found[WARM_UPS:], held


def _stats(bench: mirrored.Bench, host: str) -> list[dict[str, object]]:
    return planes.stats(bench.lab.cluster.directory, host) if bench.lab.plane == mirrored.MIRROR else []


def slowest(records: Sequence[dict[str, object]]) -> dict[str, float]:
    """Milliseconds by the names of `HELD`, the most of any DataNode's counters."""
    return {
        name: max((float(str(record[key])) / 1000 for record in records if key in record), default=0.0)
        for name, key in HELD.items()
    }


def p99(values: Sequence[float]) -> float:
    """The 99th percentile."""
    return sorted(values)[min(len(values) - 1, len(values) * 99 // 100)]


def compare(result: Result, tcp: Sequence[float], ours: Sequence[float], held: dict[str, float]) -> None:
    """Rows and the goal."""
    for name, of in (("median", statistics.median), ("p99", p99)):
        result.rows.append(Row(f"set-up, {name}", "ms", None, 1000 * of(tcp), 1000 * of(ours)))
    for name, value in held.items():
        result.rows.append(Row(f"a header is held to be reported, {name}", "ms", None, None, value))
    if not held.get("p99"):
        result.faults.append("no DataNode reported a block")
    goal(result, "a header is held to be reported, p99", "ms", held.get("p99", 0.0), GOAL_HELD_MS)

"""What reporting a pipeline and arming its mirror add to the set-up of a block, beside stock TCP's set-up; and what the
eBPF programs of DataNodes' hosts take of a frame meanwhile."""

from __future__ import annotations

import math
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from .. import mirror_agents, planes
from ..mirror_agents import ProgramCost
from ..net import topology_file
from ..say import say
from . import mirrored
from .mirrored import goal
from .options import Options
from .result import Result, Row

NAME = "mr-setup"
ABOUT = "the set-up of 400 blocks at scale 1, 3 replicas, how long headers are held for it, and what eBPF programs take"
BLOCKS, WARM_UPS = 400, 100  # those don't count: JVMs compile in them
BLOCK_BYTES = 2 << 20
REPLICATION = 3
WRITER = "h7"
GOAL_HELD_MS = 2.0
STATS_S = 11.0  # JVMs write their counters down within ten
HELD = "mirror_held_us_"  # and microseconds: how many headers a DataNode held so long at most; "any": all of them


def run(options: Options) -> Result:
    """Both planes, one after the other."""
    blocks = max(1, int(BLOCKS * options.scale))
    result = Result(NAME, ABOUT, headings={"limit": "at most"}, detail={"blocks": blocks})
    tcp, ours = (measure(options, plane, blocks, result) for plane in mirrored.PLANES)
    mirrored.right(result, "each last block is right, and mirrored")
    compare(result, tcp, ours)
    result.notes.append(
        f"{blocks} blocks of {BLOCK_BYTES >> 20} MiB on each plane, after {WARM_UPS}. The set-up is from the file's "
        "creation until all replicas have acknowledged the first packet. No write waits for the controller: where it, "
        "agents, DataNodes and client share these processors, as here, each takes from the others, which is in the "
        "set-up's difference. How long headers are held is told by the bounds of DataNodes' histograms. What the "
        "programs take is the kernel's own count, the mean of all frames of DataNodes' hosts while these blocks were "
        "written; a super-segment is one frame"
    )
    return result


@dataclass(frozen=True)
class Measured:
    """Seconds of each block's set-up, `held_ms` of all DataNodes, and what their hosts' eBPF programs took."""

    setups: list[float]
    held: dict[str, float] = field(default_factory=dict)
    cost: ProgramCost = field(default_factory=ProgramCost)


def measure(options: Options, plane: str, blocks: int, result: Result) -> Measured:
    """Writes the blocks on a plane."""
    topology = topology_file.named(options.topology or "mr-star")
    writer = WRITER if options.topology is None else topology.roles.clients[0]
    with (
        ExitStack() as stack,
        mirrored.bench(options, NAME, plane, topology, BLOCK_BYTES, result=result, writers=(writer,)) as bench,
    ):
        found, before, spent = [], Counter(), ProgramCost()
        agents = bench.lab.center.agents
        for number in range(WARM_UPS + blocks):
            if number == WARM_UPS:
                before = held_counts(bench)
                if agents:
                    stack.enter_context(mirror_agents.counted())
                    spent = agents.cost()
            target = f"/block-{number}"
            found.append(bench.writers[writer].write(target, REPLICATION).setup_s)
            bench.writers[writer].remove(target)
        cost = agents.cost() - spent if agents else ProgramCost()
        bench.write(REPLICATION)  # is checked
        after = held_counts(bench)
        after.subtract(before)
    say(f"{plane}: {blocks} blocks, set-up {1000 * statistics.median(found[WARM_UPS:]):.1f} ms in the median")
    return Measured(found[WARM_UPS:], held_ms(after), cost)


def held_counts(bench: mirrored.Bench) -> Counter[str]:
    """The histogram of all DataNodes so far, by the counters' names; none where they report nothing."""
    time.sleep(STATS_S)
    counts: Counter[str] = Counter()
    for host in bench.lab.topology.roles.datanodes if bench.lab.plane == mirrored.MIRROR else ():
        for record in planes.stats(bench.lab.cluster.directory, host):
            counts.update({name: int(value) for name, value in record.items() if name.startswith(HELD)})
    return counts


def held_ms(counts: Counter[str]) -> dict[str, float]:
    """Milliseconds within which half, and 99%, of what is counted was held: the histogram's bounds."""
    bounds = sorted((int(name.removeprefix(HELD)), count) for name, count in counts.items() if name != f"{HELD}any")
    total = counts[f"{HELD}any"]
    if not total:
        return {}
    shares = {"median": 0.5, "p99": 0.99}
    return {
        name: next((bound / 1000 for bound, count in bounds if count >= share * total), math.inf)
        for name, share in shares.items()
    }


def p99(values: Sequence[float]) -> float:
    """The 99th percentile."""
    return sorted(values)[min(len(values) - 1, len(values) * 99 // 100)]


def compare(result: Result, tcp: Measured, ours: Measured) -> None:
    """Rows and the goals."""
    for name, of in (("median", statistics.median), ("p99", p99)):
        result.rows.append(Row(f"set-up, {name}", "ms", None, 1000 * of(tcp.setups), 1000 * of(ours.setups)))
    for name, value in ours.held.items():
        result.rows.append(Row(f"a header is held to be reported, {name}", "ms", None, None, value))
    if not ours.held.get("p99"):
        result.faults.append("no DataNode reported a block")
    goal(result, "a header is held to be reported, p99", "ms", ours.held.get("p99", 0.0), GOAL_HELD_MS)
    if not ours.cost.frames:
        result.faults.append("the kernel counted no frame of the eBPF programs")
        return
    result.rows.append(Row("the eBPF programs, a frame", "ns", None, None, ours.cost.ns / ours.cost.frames))
    result.detail["frames"] = ours.cost.frames

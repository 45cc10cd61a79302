"""Fig. 10 of the TCP-MR paper: a block of 128 MB in packets of 64 KB, 2 to 5 replicas, all hosts at one switch."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import replace

from ..net import topology_file
from ..net.topology import Topology
from ..say import say
from ..transfer import BLOCK_BYTES
from . import mirrored
from .mirrored import Written, goal
from .options import Options
from .plots import Line, Plot
from .result import Result, Row

NAME = "mr-fig10"
ABOUT = "a block of 128 MB at scale 1, 2 to 5 replicas, one writer; and two writers on three DataNodes"
SCALE = 0.25
REPLICATIONS = (2, 3, 4, 5)
RUNS, RUNS_JUDGED = 2, 5  # of a number of replicas, and of the one that goals are about
JUDGED = 3  # replicas
RUNS_SHARED = 3  # of two writers each
WRITER = "h7"
SHARED, SHARING = ("h2", "h3", "h4"), ("h7", "h8")
HALF = 2
GOAL_ALONE, GOAL_SHARED, GOAL_CPU = 1.02, 0.75, 1.0
PAPER_DATA, PAPER_TOTAL = 0.75, 0.83  # its times against the chain's


def alone(options: Options, plane: str, topology: Topology, size: int, result: Result) -> dict[int, list[Written]]:
    """One writer, by the number of replicas."""
    writer = WRITER if WRITER in topology.roles.clients else topology.roles.clients[0]
    counts = [count for count in REPLICATIONS if count <= len(topology.roles.datanodes)]
    counts.sort(key=lambda count: count == JUDGED)  # last: the JVMs have compiled most of what they will
    with mirrored.bench(options, NAME, plane, topology, size, result=result, writers=(writer,), compiled=True) as bench:
        found = {count: [one for _ in range(_runs(count)) for one in bench.write(count)] for count in counts}
    found = {count: found[count] for count in sorted(found)}
    for count, written in found.items():
        say(f"{plane}: {count} replicas: {', '.join(f'{one.took.data_s:.2f} s' for one in written)}")
    return found


def shared(options: Options, plane: str, topology: Topology, size: int, result: Result) -> list[Written]:
    """Two writers at once, whose pipelines have the same three DataNodes."""
    rate = topology.links[0].shape.rate_bit_s // HALF
    few = topology.with_roles(replace(topology.roles, datanodes=SHARED))
    with mirrored.bench(
        options, NAME, plane, few, size, result=result, writers=SHARING, uplinks_bit_s=rate, kind="shared"
    ) as bench:
        found = [one for _ in range(RUNS_SHARED) for one in bench.write(len(SHARED))]
    say(f"{plane}: two writers: {', '.join(f'{one.took.data_s:.2f} s' for one in found)}")
    return found


def run(options: Options) -> Result:
    """Both planes, one after the other, without and with contention."""
    result = Result(NAME, ABOUT, headings={"paper": "paper, mirrored/chain", "limit": "at most"})
    topology = topology_file.named(options.topology or "mr-star")
    size = int(BLOCK_BYTES * options.scale)
    tcp, ours = (alone(options, plane, topology, size, result) for plane in mirrored.PLANES)
    both = []
    if {*SHARED, *SHARING} <= set(topology.hosts):
        both = [shared(options, plane, topology, size, result) for plane in mirrored.PLANES]
    mirrored.right(result)
    compare(result, tcp, ours)
    if both:
        compare_shared(result, both)
    result.notes.append(
        f"{size} bytes, medians of {RUNS} writes of each kind, {RUNS_JUDGED} with {JUDGED} replicas and "
        f"{RUNS_SHARED} times two; links of {topology.links[0].shape.rate_bit_s / 1e6:g} "
        "Mbit/s; both planes have cubic congestion control and the same buffers. Of two writers DataNodes' uplinks "
        "have half of that: with uplinks as fast as downlinks a chain never waits for them, since what comes up from "
        "one DataNode comes down to another"
    )
    return result


def compare(result: Result, tcp: dict[int, list[Written]], ours: dict[int, list[Written]]) -> None:
    """Rows, goals and the plot of one writer."""
    for count, chain in tcp.items():
        both = [chain, ours[count]]
        data = _row(result, f"{count} replicas: data", both, lambda one: one.took.data_s)
        total = _row(result, f"{count} replicas: total", both, lambda one: one.took.total_s)
        result.rows.append(Row(f"{count} replicas: data against stock", "times", PAPER_DATA, None, data))
        result.rows.append(Row(f"{count} replicas: total against stock", "times", PAPER_TOTAL, None, total))
        if count == JUDGED:
            goal(result, f"one writer, {count} replicas: data against stock", "times", data, GOAL_ALONE)
            cpu = [statistics.median(map(mirrored.relays_cpu_s, found)) for found in both]
            result.rows.append(Row(f"{count} replicas: CPU of D1 and D2", "CPU-s", None, *cpu))
            goal(result, f"{count} replicas: CPU of D1 and D2 against stock", "times", cpu[1] / cpu[0], GOAL_CPU)
        _busy(result, f"{count} replicas", both)
    lines = [
        Line(label, [float(count) for count in found], [_median(found[count], "data_s") for count in found])
        for label, found in (("chain, stock TCP", tcp), ("mirrored", ours))
    ]
    result.plots.append(Plot(NAME, "Data time of a block", "replicas", "s", lines))


def compare_shared(result: Result, both: list[list[Written]]) -> None:
    """Rows and the goal of two writers."""
    name = f"two writers, {len(SHARED)} replicas"
    times = _row(result, f"{name}: data", both, lambda one: one.took.data_s)
    _row(result, f"{name}: total", both, lambda one: one.took.total_s)
    _busy(result, name, both)
    goal(
        result,
        f"two writers share the uplinks, {len(SHARED)} replicas: data against stock",
        "times",
        times,
        GOAL_SHARED,
    )


def _runs(count: int) -> int:
    return RUNS_JUDGED if count == JUDGED else RUNS


def _busy(result: Result, name: str, both: list[list[Written]]) -> None:
    figures = map(mirrored.processors, both)
    result.rows.append(Row(f"{name}: processors of this machine busy", "% of time", None, *figures))


def _row(result: Result, what: str, both: list[list[Written]], of: Callable[[Written], float]) -> float:
    """A row of medians; returns ours against stock."""
    tcp, ours = (statistics.median(map(of, found)) for found in both)
    result.rows.append(Row(what, "s", None, tcp, ours))
    return ours / tcp


def _median(found: list[Written], what: str) -> float:
    return statistics.median(getattr(one.took, what) for one in found)

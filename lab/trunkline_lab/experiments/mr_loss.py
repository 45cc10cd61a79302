"""Copies that get lost on their last link: 0, 0.1, 1 and 5% of them; what DataNodes then send each other really."""

from __future__ import annotations

import statistics

from ..net import loss
from ..say import say
from ..transfer import BLOCK_BYTES
from . import mirrored
from .mirrored import Written
from .mr_uplink import RATE_BIT_S, WRITER, of
from .options import Options
from .plots import Line, Plot
from .result import Result, Row, mb

NAME = "mr-loss"
ABOUT = "a block of 128 MB at scale 1, 3 replicas, of whose copies 0, 0.1, 1 and 5% are lost"
SCALE = 0.25
LOSSES = (0.0, 0.001, 0.01, 0.05)
REPLICATION = 3
RUNS = 3
STUDY = {0.0: 172.0, 0.001: 177.0, 0.01: 152.0, 0.05: 77.0}  # Mbit/s, the middle of its ranges; no HDFS


def measure(options: Options, plane: str, size: int, result: Result) -> dict[float, list[Written]]:
    """The block on a plane, several times at each loss; stock TCP has no copies that could be lost."""
    topology = of(options, NAME)
    writer = WRITER if options.topology is None else topology.roles.clients[0]
    found: dict[float, list[Written]] = {}
    with mirrored.bench(options, NAME, plane, topology, size, result=result, writers=(writer,)) as bench:
        for share in LOSSES if plane == mirrored.MIRROR else LOSSES[:1]:
            if plane == mirrored.MIRROR:
                for host in topology.roles.datanodes:
                    loss.of_copies(bench.lab.center.fabric, host, share)
            found[share] = [one for _ in range(RUNS) for one in bench.write(REPLICATION)]
            say(f"{plane}: {share:.1%} lost: {', '.join(f'{one.took.data_s:.2f} s' for one in found[share])}")
    return found


def run(options: Options) -> Result:
    """Stock TCP, then copies at each loss."""
    result = Result(NAME, ABOUT, headings={"paper": "study, mirrored", "tcp": "TCP here, no loss"})
    size = int(BLOCK_BYTES * options.scale)
    tcp, ours = (measure(options, plane, size, result) for plane in mirrored.PLANES)
    rate = {share: _rate(size, found) for share, found in ours.items()}
    for share, found in ours.items():
        name = f"{100 * share:g}% lost"
        result.rows.append(Row(f"{name}: data", "Mbit/s", STUDY[share], _rate(size, tcp[0.0]), rate[share]))
        for relay in range(REPLICATION - 1):
            sent = [statistics.median(mirrored.uplink_bytes(one)[relay] for one in of) for of in (tcp[0.0], found)]
            result.rows.append(Row(f"{name}: sent by D{relay + 1}", "MB", None, *map(mb, sent)))
    # Each write was compared on every replica's disk, and had its bytes left unsent: both are faults where it isn't so.
    right = not result.faults
    result.rows.append(Row("goal: every replica right, and mirrored, at every loss", "", None, None, None, ok=right))
    result.notes.append(
        f"{size} bytes, {RUNS} writes of each kind, medians; links of {RATE_BIT_S / 1e6:g} Mbit/s; each copy is "
        "dropped with this probability where it comes to its host, by a filter of the kernel's"
    )
    lines = [Line("mirrored", [100 * share for share in rate], list(rate.values()))]
    lines.append(Line("chain, stock TCP, no loss", [0.0, 5.0], [_rate(size, tcp[0.0])] * 2, dashed=True))
    result.plots.append(Plot(NAME, "Throughput of a block while copies are lost", "% of copies", "Mbit/s", lines))
    return result


def _rate(size: int, found: list[Written]) -> float:
    return 8 * size / statistics.median(one.took.data_s for one in found) / 1e6

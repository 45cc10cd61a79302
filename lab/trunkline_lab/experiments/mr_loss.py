"""Copies that get lost on their last link: 0, 0.1, 1 and 5% of them; what DataNodes then send each other really."""

from __future__ import annotations

import statistics

from ..net import loss, tuning
from ..say import say
from ..transfer import BLOCK_BYTES
from . import mirrored
from .mirrored import Written, goal
from .mr_uplink import RATE_BIT_S, WRITER, of
from .options import Options
from .plots import Line, Plot
from .result import Result, Row

NAME = "mr-loss"
ABOUT = "a block of 128 MB at scale 1, 3 replicas, of whose copies 0, 0.1, 1 and 5% are lost"
SCALE = 0.5  # 64 MB, as in the study
LOSSES = (0.0, 0.001, 0.01, 0.05)
REPLICATION = 3
RUNS = 3
# The study's, without HDFS: Mbit/s, the middle of its ranges, and MB that a relay's host has sent at most, of 64.
STUDY_RATE = {0.0: 172.0, 0.001: 177.0, 0.01: 152.0, 0.05: 77.0}
STUDY_SENT = {0.0: 2.9, 0.001: 4.0, 0.01: 8.7, 0.05: 35.0}
STUDY_MB = 64


def measure(options: Options, plane: str, size: int, result: Result) -> dict[float, list[Written]]:
    """The block on a plane, several times at each loss; stock TCP has no copies that could be lost."""
    topology = of(options, NAME)
    writer = WRITER if options.topology is None else topology.roles.clients[0]
    found: dict[float, list[Written]] = {}
    # How much is left unsent is what the losses tell, and the goals judge.
    with mirrored.bench(
        options, NAME, plane, topology, size, result=result, writers=(writer,), least_virtual=0.0
    ) as bench:
        for share in LOSSES if plane == mirrored.MIRROR else LOSSES[:1]:
            if plane == mirrored.MIRROR:
                for host in topology.roles.datanodes:
                    loss.of_copies(bench.lab.center.fabric, host, share)
            found[share] = [one for _ in range(RUNS) for one in bench.write(REPLICATION)]
            say(f"{plane}: {share:.1%} lost: {', '.join(f'{one.took.data_s:.2f} s' for one in found[share])}")
    return found


def run(options: Options) -> Result:
    """Stock TCP, then copies at each loss."""
    names = {"paper": "study, mirrored", "tcp": "TCP here, no loss", "limit": "at most"}
    result = Result(NAME, ABOUT, headings=names)
    size = int(BLOCK_BYTES * options.scale)
    tcp, ours = (measure(options, plane, size, result) for plane in mirrored.PLANES)
    mirrored.right(result)
    compare(result, size, tcp[0.0], ours)
    result.notes.append(
        f"{size} bytes, {RUNS} writes of each kind, medians; links of {RATE_BIT_S / 1e6:g} Mbit/s; each copy is "
        "dropped with this probability where it comes to its host, by a filter of the kernel's. Super-segments have "
        f"{tuning.SUPER_SEGMENT_BYTES >> 10} KiB at most"
    )
    return result


def compare(result: Result, size: int, tcp: list[Written], ours: dict[float, list[Written]]) -> None:
    """Rows, goals and the plot of both planes' writes."""
    for share, found in ours.items():
        name = f"{100 * share:g}% lost"
        result.rows.append(Row(f"{name}: data", "Mbit/s", STUDY_RATE[share], _rate(size, tcp), _rate(size, found)))
        study = 100 * STUDY_SENT[share] / STUDY_MB
        for relay in range(REPLICATION - 1):
            both = [_sent(size, written, relay) for written in (tcp, found)]
            result.rows.append(Row(f"{name}: sent by D{relay + 1}, of the block", "%", study, *both))
        most = max(_sent(size, found, relay) for relay in range(REPLICATION - 1))
        goal(result, f"{name}: sent by a relay, of the block", "%", most, round(study, 1))
    everything = [one for found in ours.values() for one in found]
    result.rows.append(
        Row("processors of this machine busy", "% of time", None, *map(mirrored.processors, (tcp, everything)))
    )
    rate = [_rate(size, found) for found in ours.values()]
    lines = [Line("mirrored", [100 * share for share in ours], rate)]
    lines.append(Line("chain, stock TCP, no loss", [0.0, 5.0], [_rate(size, tcp)] * 2, dashed=True))
    result.plots.append(Plot(NAME, "Throughput of a block while copies are lost", "% of copies", "Mbit/s", lines))


def _rate(size: int, found: list[Written]) -> float:
    return 8 * size / statistics.median(one.took.data_s for one in found) / 1e6


def _sent(size: int, found: list[Written], relay: int) -> float:
    """What a relay's host has sent, with headers and acknowledgements, in percent of the block."""
    return 100 * statistics.median(mirrored.uplink_bytes(one)[relay] for one in found) / size

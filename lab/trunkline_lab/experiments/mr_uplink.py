"""DataNodes' uplinks at a quarter of their links' rate: what a chain waits for, and copies by the switch do not."""

from __future__ import annotations

import statistics

from ..net import topology_file
from ..net.topology import Topology
from ..say import say
from ..transfer import BLOCK_BYTES
from . import mirrored
from .mirrored import Written, goal
from .options import Options
from .result import Result, Row, mb

NAME = "mr-uplink"
ABOUT = "a block of 128 MB at scale 1, 3 replicas, DataNodes' uplinks at a quarter of their downlinks"
SCALE = 1.0
RATE_BIT_S = 200 * 10**6
QUARTER = 4
REPLICATION = 3
RUNS = 3
WRITER = "h7"
GOAL_TIMES = 3.0
GOAL_SENT = 5.0  # percent of a stock relay's bytes
STUDY = (47.0, 177.0)  # Mbit/s, plain and mirrored, 64 MB over links of 200 Mbit/s (no HDFS)


def of(options: Options, name: str) -> Topology:
    """The star with links of this experiment's rate."""
    topology = topology_file.named(options.topology or "mr-star")
    return topology.with_rates(RATE_BIT_S, RATE_BIT_S) if options.topology is None else topology


def measure(options: Options, plane: str, size: int, result: Result) -> list[Written]:
    """The block on a plane, several times."""
    topology = of(options, NAME)
    writer = WRITER if options.topology is None else topology.roles.clients[0]
    rate = RATE_BIT_S // QUARTER
    with mirrored.bench(
        options, NAME, plane, topology, size, result=result, writers=(writer,), uplinks_bit_s=rate
    ) as bench:
        found = [written for _ in range(RUNS) for written in bench.write(REPLICATION)]
    say(f"{plane}: {', '.join(f'{one.took.data_s:.2f} s' for one in found)}")
    return found


def run(options: Options) -> Result:
    """Both planes, one after the other."""
    result = Result(NAME, ABOUT, headings={"paper_tcp": "study, plain", "paper": "study, mirrored", "limit": "goal"})
    size = int(BLOCK_BYTES * options.scale)
    both = [measure(options, plane, size, result) for plane in mirrored.PLANES]
    mirrored.right(result)
    compare(result, size, *both)
    result.notes.append(
        f"{size} bytes, {RUNS} writes on each plane, medians; links of {RATE_BIT_S / 1e6:g} Mbit/s, DataNodes' uplinks "
        f"of {RATE_BIT_S // QUARTER / 1e6:g}; both planes have cubic congestion control and the same buffers"
    )
    return result


def compare(result: Result, size: int, tcp: list[Written], ours: list[Written]) -> None:
    """Rows and goals of both planes' writes."""
    rates = [8 * size / statistics.median(one.took.data_s for one in found) / 1e6 for found in (tcp, ours)]
    result.rows.append(Row("data", "Mbit/s", STUDY[1], rates[0], rates[1], paper_tcp=STUDY[0]))
    seconds = [statistics.median(one.took.total_s for one in found) for found in (tcp, ours)]
    result.rows.append(Row("file, created to closed", "s", None, *seconds))
    for relay in range(REPLICATION - 1):
        sent = [statistics.median(mirrored.uplink_bytes(one)[relay] for one in found) for found in (tcp, ours)]
        result.rows.append(Row(f"sent by D{relay + 1}", "MB", None, *map(mb, sent)))
        goal(result, f"sent by D{relay + 1}, against stock", "%", 100 * sent[1] / sent[0], GOAL_SENT)
    result.rows.append(
        Row("processors of this machine busy", "% of time", None, *map(mirrored.processors, (tcp, ours)))
    )
    goal(result, "throughput against stock", "times", rates[1] / rates[0], GOAL_TIMES, at_least=True)

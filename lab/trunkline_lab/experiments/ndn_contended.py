"""Four writers at once over a narrow core: links between routers at a quarter of the hosts' rate.

Twice: with hosts' links at 1 Gbit/s, where a machine of few cores is busy long before the narrow links are, and with
hosts' links at a fifth of that, where the narrow links are what everybody waits for.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .. import replicas
from ..cluster import FSSHELL, Properties
from ..net import data_center, topology_file
from ..net.links import LinkCounts
from ..net.meter import LabBytes
from ..net.topology import Roles, Topology
from ..net.trace import LinkTrace, Way, busy_share
from ..placed_put import PlacedPut
from ..procs import Process
from ..say import say
from ..transfer import BLOCK_BYTES, Cost
from . import writes
from .options import Options
from .plots import Line, Plot
from .result import DIRECTORY, Result, Row, mb

NAME = "ndn-contended"
ABOUT = "four writers at once, 3 replicas, links between routers at a quarter of the hosts' rate"
SCALE = 0.25
REPLICATION = 3
SIZE = 4 * BLOCK_BYTES  # of each writer, at scale 1
FILES = 16  # of each writer, of a block each
WRITERS = ("h3", "h5", "h12", "h13")
ROLES = Roles("h1", ("h3", "h5", "h8", "h12", "h13", "h16"), WRITERS)
RATES_BIT_S = (10**9, 2 * 10**8)  # of hosts' links
NARROW = 4
TIMEOUT_S = 1800


@dataclass
class Seen:
    """Of one plane: seconds of each writer, what they cost together, and how busy links and processors were."""

    seconds: list[float]
    cost: Cost
    use: dict[Way, list[tuple[float, float]]]
    processors: float
    pipelines: dict[str, list[str]]  # hosts of each file's, by its path

    @property
    def links(self) -> LinkCounts:
        """What each link carried."""
        assert isinstance(self.cost.links, LabBytes)
        return self.cost.links.links

    def fullest(self) -> tuple[Way, float]:
        """The way of a link that what it carried keeps busy for longest, and for how many seconds."""
        return max(_seconds_at_rate(self.links).items(), key=lambda item: item[1])


def measure(options: Options, plane: str, rate_bit_s: int, result: Result) -> Seen:
    """All writers on a plane, hosts' links being of a rate."""
    topology = topology_file.named(options.topology or "paper-fig5")
    if options.topology is None:
        topology = topology.with_roles(ROLES)
    topology = topology.with_rates(rate_bit_s, rate_bit_s // NARROW)
    return at_once(options, plane, topology, result, DIRECTORY / NAME / f"{plane}-{_rate(rate_bit_s)}")


def draw(datanodes: Sequence[str], writer: str, number: int) -> list[str]:
    """The hosts of a writer's n-th pipeline, as HDFS would draw them without racks, and the same each time: first the
    writer's own, if it has a DataNode, then any others."""
    drawn = random.Random(f"{writer} {number}").sample(sorted(set(datanodes) - {writer}), REPLICATION)
    return [writer, *drawn][:REPLICATION] if writer in datanodes else drawn


def at_once(
    options: Options,
    plane: str,
    topology: Topology,
    result: Result,
    directory: Path,
    *,
    extra: Properties | None = None,
    tuned: bool = False,
) -> Seen:
    """All clients of a topology write their files at once. `extra` are properties of Hadoop; `tuned` has hosts' TCP as
    mirrored replication wants it."""
    # Payload follows from its size: no two files are alike.
    sizes = [max(FILES, int(SIZE * options.scale) // FILES) - number for number in range(FILES)]
    files = [writes.source(NAME, size) for size in sizes]
    rate_bit_s, on_disk = topology.links[0].shape.rate_bit_s, len(topology.roles.clients) * sum(sizes)
    with data_center.rig(
        topology,
        plane,
        directory,
        lab=options.lab,
        racks=False,
        extra=extra,
        disk_bytes=on_disk * REPLICATION,
        tuned=tuned,
    ) as rig:
        targets = {host: f"/from-{host}" for host in topology.roles.clients}
        rig.cluster.client(FSSHELL, "-mkdir", *targets.values(), name="mkdir")
        datanodes = {datanode.host: datanode for datanode in rig.cluster.datanodes}
        puts: list[PlacedPut] = []
        for host, target in targets.items():
            placed = [
                (file, [datanodes[name] for name in draw(list(datanodes), host, number)])
                for number, file in enumerate(files)
            ]
            puts.append(PlacedPut(rig.cluster, host, target, placed, REPLICATION))
        seconds: list[float] = []

        def all_at_once() -> Process:
            for put in puts:
                put.begin()
            seconds.extend(put.end(TIMEOUT_S) for put in puts)
            return puts[0].process

        say(f"{plane}: {len(targets)} puts at once, hosts' links of {rate_bit_s / 1e6:g} Mbit/s")
        with LinkTrace(rig.center.fabric, topology) as trace:
            cost = rig.measure(all_at_once)
        pipelines = {}
        for target in targets.values():
            for file in files:
                path = f"{target}/{file.name}"
                result.faults += writes.faults(rig, path, file, REPLICATION, None)
                pipelines[path] = [node.host for block in replicas.blocks(rig.cluster, path) for node in block.pipeline]
        if plane == "ndn" and cost.fallbacks():
            result.notes.append(f"ndn: went by TCP: {cost.fallbacks()}")
        return Seen(seconds, cost, trace.use(), trace.processors_use(), pipelines)


def same_pipelines(seen: dict[str, Seen], result: Result) -> None:
    """Notes as a fault where a plane's files went through other DataNodes than those of the first one."""
    (first, wanted), *others = seen.items()
    for plane, found in others:
        if differing := sum(found.pipelines[path] != hosts for path, hosts in wanted.pipelines.items()):
            result.faults.append(f"{plane}: {differing} pipelines of {len(wanted.pipelines)} are not those of {first}")


def run(options: Options) -> Result:
    """Both planes, one after the other, at each rate."""
    result = Result(NAME, ABOUT)
    result.notes.append(f"each writer: {FILES} files, {int(SIZE * options.scale)} bytes")
    for rate in RATES_BIT_S:
        seen = {plane: measure(options, plane, rate, result) for plane in data_center.PLANES}
        same_pipelines(seen, result)
        _compare(rate, *seen.values(), result)
    return result


def _compare(rate: int, tcp: Seen, ours: Seen, result: Result) -> None:
    both, at = (tcp, ours), f"{rate / 1e6:g} Mbit/s"

    def row(what: str, unit: str, of: list[float]) -> None:
        result.rows.append(Row(f"hosts at {at}: {what}", unit, None, *of))

    row("first writer done", "s", [min(seen.seconds) for seen in both])
    row("last writer done", "s", [max(seen.seconds) for seen in both])
    row("writers' mean", "s", [sum(seen.seconds) / len(seen.seconds) for seen in both])
    row("links between routers", "MB", [mb(seen.links.core()) for seen in both])
    row("all links", "MB", [mb(seen.links.total()) for seen in both])
    row("fullest link at its rate", "s", [seen.fullest()[1] for seen in both])
    row("fullest link 90% busy or more", "% of time", [busy_share(seen.use[seen.fullest()[0]]) for seen in both])
    row("packets dropped at full queues", "packets", [seen.links.drops() for seen in both])
    row("CPU, all hosts", "CPU-s", [sum(seen.cost.cpu_s.values()) for seen in both])
    row("processors of this machine busy", "% of time", [seen.processors for seen in both])
    named = (f"{plane} {' to '.join(seen.fullest()[0])}" for plane, seen in zip(data_center.PLANES, both, strict=True))
    result.notes.append(f"fullest link, hosts at {at}: {', '.join(named)}")
    lines = [Line("TCP here", [], sorted(tcp.seconds)), Line("Trunkline", [], sorted(ours.seconds))]
    groups = [f"{n}." for n in range(1, len(ours.seconds) + 1)]
    title = f"Completion of four writes at once, narrow core, hosts at {at}"
    result.plots.append(Plot(f"{NAME}-{_rate(rate)}", title, "writer", "s", lines, groups))
    steps = {plane: seen.use[seen.fullest()[0]] for plane, seen in zip(("TCP here", "Trunkline"), both, strict=True)}
    busy = [Line(label, [t for t, _ in found], [p for _, p in found]) for label, found in steps.items()]
    title = f"The fullest link over time, hosts at {at}"
    result.plots.append(Plot(f"{NAME}-use-{_rate(rate)}", title, "s", "% of its rate", busy))


def _rate(bit_s: int) -> str:
    """A rate as names of files have it."""
    return f"{bit_s // 10**6}mbit"


def _seconds_at_rate(links: LinkCounts) -> dict[Way, float]:
    """How long each way of each link is busy with what it has carried."""
    return {
        way: links.by_way[way].sent_bytes * 8 / link.shape.rate_bit_s
        for link in links.topology.links
        for way in (link.ends, link.ends[::-1])
    }

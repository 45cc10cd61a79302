"""The planes side by side: four writers at once over a narrow core, as in ndn-contended, with hosts at 200 Mbit/s.

Stock TCP; TCP tuned alike, with what `trunkline hadoop conf` sets for throughput and the hosts' buffers; named data;
and mirrored replication. All but named data go through Linux bridges, which on the plane mirror copy by an eBPF
program; named data goes through forwarders at their place.
"""

from __future__ import annotations

from .. import planes
from ..net import data_center, topology_file
from ..net.data_center import MIRROR
from ..net.links import LinkCounts
from ..net.topology import Topology
from . import mirrored, ndn_contended
from .mirrored import goal
from .ndn_contended import FILES, NARROW, SIZE, Seen
from .options import Options
from .plots import Line, Plot
from .result import DIRECTORY, Result, Row, mb

NAME = "mr-planes"
ABOUT = (
    "four writers at once, 3 replicas, core at a quarter of the hosts' rate: TCP, TCP tuned alike, by name, mirrored"
)
SCALE = 0.125  # so that four planes take five minutes, with blocks of 4 MB
RATE_BIT_S = 2 * 10**8
TCP, ALIKE, NDN = "tcp", "tcp, tuned alike", "ndn"
GOAL_LINKS = 1.0  # times, at most
COLUMNS = {TCP: "paper_tcp", ALIKE: "tcp", NDN: "mount", MIRROR: "ours"}


def of(options: Options) -> Topology:
    """Where the data centre of ndn-contended has routers, all planes but named data have bridges."""
    return (
        topology_file.named(options.topology or "paper-fig5")
        .with_roles(ndn_contended.ROLES)
        .with_rates(RATE_BIT_S, RATE_BIT_S // NARROW)
    )


def measure(options: Options, kind: str, result: Result) -> Seen:
    """All writers on one of the planes."""
    extra = planes.tuned_alike("ndn") if kind in (ALIKE, MIRROR) else {}
    plane = kind if kind in (*data_center.PLANES, MIRROR) else TCP
    directory = DIRECTORY / NAME / kind.replace(", ", "-").replace(" ", "-")
    return ndn_contended.at_once(options, plane, of(options), result, directory, extra=extra, tuned=kind == ALIKE)


def run(options: Options) -> Result:
    """All four, one after the other."""
    result = Result(
        NAME,
        ABOUT,
        headings={
            "paper_tcp": "TCP",
            "tcp": "TCP, tuned alike",
            "mount": "by name",
            "ours": "mirrored",
            "limit": "at most",
        },
    )
    seen = {kind: measure(options, kind, result) for kind in COLUMNS}
    ndn_contended.same_pipelines(seen, result)
    mirrored.right(result, "every replica is right, on every plane")
    compare(result, seen)
    result.notes.append(
        f"each of four writers: {FILES} files, {int(SIZE * options.scale)} bytes; hosts' links of "
        f"{RATE_BIT_S / 1e6:g} Mbit/s, those between switches of {RATE_BIT_S / NARROW / 1e6:g}; the pipelines are the "
        "same on each plane, and `fullest link at its rate` is what they take at the least"
    )
    return result


def compare(result: Result, seen: dict[str, Seen]) -> None:
    """Rows, goals and the plot of all planes."""

    def row(what: str, unit: str, of: dict[str, float]) -> None:
        figures: dict[str, float | None] = dict.fromkeys(("paper_tcp", "tcp", "mount", "ours"))
        figures |= {COLUMNS[kind]: value for kind, value in of.items()}
        result.rows.append(Row(what, unit, None, **figures))

    row("first writer done", "s", {kind: min(one.seconds) for kind, one in seen.items()})
    row("last writer done", "s", {kind: max(one.seconds) for kind, one in seen.items()})
    row("writers' mean", "s", {kind: sum(one.seconds) / len(one.seconds) for kind, one in seen.items()})
    row("links between switches", "MB", {kind: mb(one.links.core()) for kind, one in seen.items()})
    row("sent by hosts", "MB", {kind: mb(_sent(one.links)) for kind, one in seen.items()})
    row("all links", "MB", {kind: mb(one.links.total()) for kind, one in seen.items()})
    row("fullest link at its rate", "s", {kind: one.fullest()[1] for kind, one in seen.items()})
    row("packets dropped at full queues", "packets", {kind: one.links.drops() for kind, one in seen.items()})
    row("CPU, all hosts", "CPU-s", {kind: sum(one.cost.cpu_s.values()) for kind, one in seen.items()})
    row("processors of this machine busy", "% of time", {kind: one.processors for kind, one in seen.items()})
    totals = {kind: one.links.total() for kind, one in seen.items()}
    goal(result, "mirrored, all links against TCP tuned alike", "times", totals[MIRROR] / totals[ALIKE], GOAL_LINKS)
    lines = [Line(kind, [], sorted(one.seconds)) for kind, one in seen.items()]
    groups = [f"{n}." for n in range(1, 1 + max(len(one.seconds) for one in seen.values()))]
    result.plots.append(Plot(NAME, "Completion of four writes at once, narrow core", "writer", "s", lines, groups))


def _sent(links: LinkCounts) -> int:
    return sum(links.out(host) for host in links.topology.hosts)

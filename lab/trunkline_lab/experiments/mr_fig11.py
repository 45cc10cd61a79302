"""Fig. 11 of the TCP-MR paper: what crosses a tree of three tiers, by where the client is, beside its equation 7."""

from __future__ import annotations

from dataclasses import dataclass

from ..net import topology_file
from ..net.links import LinkCounts
from ..net.topology import Topology
from ..say import say
from ..transfer import BLOCK_BYTES
from . import mirrored
from .mirrored import Written
from .options import Options
from .plots import Line, Plot
from .result import Result, Row, mb

NAME = "mr-fig11"
ABOUT = "a block of 128 MB at scale 1, 3 replicas, in three tiers: bytes over every class of links"
SCALE = 1.0
REPLICATION = 3
WITHIN = 3.0  # percent
ROOT = "c1"
CLIENTS = {
    "client outside": "h1",
    "client on D1's host": "h3",
    "client in D1's rack": "h4",
    "client in another rack": "h9",
}
# Where the paper's equation holds for a tree of copies: a client below has its segments climb once more than it counts.
AS_EQUATION_7 = ("client outside", "client on D1's host")
TIERS = ("aggregation and core", "edge and aggregation", "hosts and edge")


@dataclass(frozen=True)
class Ways:
    """Links that a block crosses: in a chain, by equation 7 less, and in a tree of copies."""

    chain: int
    climbed: int
    tree: int


def ways(topology: Topology, root: str, client: str, pipeline: list[str]) -> Ways:
    """Of a pipeline; a client at the root is outside, and its own link is not counted."""
    outside = {(client, root)} if topology.path(client, root)[0].other(client) == root else set()
    chain = climbed = 0
    for number, (start, end) in enumerate(zip([client, *pipeline], pipeline, strict=False)):
        for way in topology.tree(start, [end]) - outside:
            chain += 1
            # What is copied is the first connection that leaves a host.
            first = number == (1 if client == pipeline[0] else 0)
            climbed += _upward(topology, root, way) and not first
    tree = topology.tree(client, [host for host in pipeline if host != client]) - outside
    return Ways(chain, climbed, len(tree))


def _upward(topology: Topology, root: str, way: tuple[str, str]) -> bool:
    return len(topology.path(way[1], root)) < len(topology.path(way[0], root))


def carried(counts: LinkCounts, root: str, client: str) -> int:
    """Bytes over all links, without those of a client outside to the root."""
    outside = {(client, root), (root, client)}
    return sum(count.sent_bytes for way, count in counts.by_way.items() if way not in outside)


def by_class(counts: LinkCounts, root: str, client: str) -> dict[tuple[str, str], int]:
    """The same by tier and direction."""
    topology, found = counts.topology, {}
    for tier in TIERS:
        for direction in ("up", "down"):
            found[tier, direction] = 0
    for way, count in counts.by_way.items():
        if set(way) == {client, root} or (root in way and set(way) & set(topology.hosts)):
            continue
        lower = max(len(topology.path(end, root)) for end in way)
        direction = "up" if _upward(topology, root, way) else "down"
        found[TIERS[lower - 1], direction] += count.sent_bytes
    return found


def measure(options: Options, plane: str, topology: Topology, size: int, result: Result) -> dict[str, Written]:
    """The block from each client."""
    found = {}
    hosts = list(CLIENTS.values())
    with mirrored.bench(options, NAME, plane, topology, size, result=result, writers=hosts, racks=True) as bench:
        for where, host in CLIENTS.items():
            [found[where]] = bench.write(REPLICATION, [host])
            say(f"{plane}: {where}: {host} > {' > '.join(found[where].pipeline)}")
    return found


def run(options: Options) -> Result:
    """Both planes, one after the other."""
    result = Result(NAME, ABOUT, headings={"paper": "equation 7", "limit": "at most"})
    topology = topology_file.named(options.topology or "mr-tree")
    size = int(BLOCK_BYTES * options.scale)
    tcp, ours = (measure(options, plane, topology, size, result) for plane in mirrored.PLANES)
    for where, client in CLIENTS.items():
        _compare(result, where, client, tcp[where], ours[where])
    saved = [row for row in result.rows if row.what.endswith("links saved")]
    lines = [
        Line("equation 7", [], [row.paper or 0.0 for row in saved]),
        Line("here", [], [row.ours or 0.0 for row in saved]),
    ]
    result.plots.append(Plot(NAME, "Traffic saved", "", "%", lines, [where.removeprefix("client ") for where in ours]))
    result.notes.append(
        f"{size} bytes. HDFS draws a pipeline for each write, so what crosses is held against what stock TCP's chain "
        "has a link carry, acknowledgements with it. Equation 7 counts every link up but the client's own as saved; a "
        "client in a rack has its segments climb to where the others' branch off, which is the tree's own figure"
    )
    return result


def _compare(result: Result, where: str, client: str, tcp: Written, ours: Written) -> None:
    """Rows of one place of the client."""
    topology = tcp.links.topology
    stock, here = (ways(topology, ROOT, client, one.pipeline) for one in (tcp, ours))
    a_link = carried(tcp.links, ROOT, client) / stock.chain
    crossed = carried(ours.links, ROOT, client)
    saved = 100 * (1 - crossed / (a_link * here.chain))
    result.rows.append(Row(f"{where}: links saved", "%", 100 * here.climbed / here.chain, None, saved))
    both = [by_class(one.links, ROOT, client) for one in (tcp, ours)]
    for tier, direction in both[0]:
        figures = [mb(counts[tier, direction]) for counts in both]
        result.rows.append(Row(f"{where}: {tier}, {direction}", "MB", None, *figures))
    goals = {"the tree's links": here.tree}
    if where in AS_EQUATION_7:
        goals["equation 7"] = here.chain - here.climbed
    for what, links in goals.items():
        off = 100 * (crossed / (a_link * links) - 1)
        holds = abs(off) <= WITHIN
        result.rows.append(Row(f"goal: {where}: traffic off {what}", "%", None, None, off, limit=WITHIN, ok=holds))
        if not holds:
            result.faults.append(f"{where}: {off:+.1f}% off {what}, more than {WITHIN:g}")
    result.detail.setdefault("pipelines", {})[where] = {"tcp": tcp.pipeline, "mirror": ours.pipeline}

"""Fig. 11 of the TCP-MR paper: what crosses a tree of three tiers, by where the client is, beside its equation 7."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..net import topology_file
from ..net.links import LinkCounts
from ..net.topology import Topology
from ..say import say
from ..transfer import BLOCK_BYTES
from . import mirrored
from .mirrored import Written, goal
from .options import Options
from .plots import Line, Plot
from .result import Result, Row, mb

NAME = "mr-fig11"
ABOUT = "a block of 128 MB at scale 1, 3 replicas, in three tiers: bytes over every class of links"
SCALE = 1.0
REPLICATION = 3
MIRRORED_RUNS = 3  # from each client; a chain carries the same each time
WITHIN = 3.0  # percent
SENT = 5.0  # percent of what stock TCP's relays send
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
UPLINKS = (TIERS[-1], "up")


Way = tuple[str, str]
Class = tuple[str, str]


@dataclass(frozen=True)
class Ways:
    """Links that a block crosses, each way: in a chain, those of it that equation 7 saves, and in a tree of copies. A
    client at the root is outside, and its own link is not counted."""

    chain: list[Way]
    climbed: list[Way]
    tree: list[Way]

    @property
    def acknowledged(self) -> list[Way]:
        """Those that acknowledgements cross, in a chain as in a tree."""
        return [way[::-1] for way in self.chain]

    @property
    def equation_7(self) -> int:
        """Links that equation 7 leaves."""
        return len(self.chain) - len(self.climbed)


def ways(topology: Topology, root: str, client: str, pipeline: list[str]) -> Ways:
    """Of a pipeline."""
    outside = _outside(topology, root, client)
    chain, climbed = [], []
    for number, (start, end) in enumerate(zip([client, *pipeline], pipeline, strict=False)):
        # What is copied is the first connection that leaves a host.
        first = number == (1 if client == pipeline[0] else 0)
        for way in topology.tree(start, [end]) - outside:
            chain.append(way)
            if _upward(topology, root, way) and not first:
                climbed.append(way)
    tree = topology.tree(client, [host for host in pipeline if host != client]) - outside
    return Ways(chain, climbed, sorted(tree))


def _outside(topology: Topology, root: str, client: str) -> set[Way]:
    """The link of a client at the root, both ways."""
    return {(client, root), (root, client)} if topology.path(client, root)[0].other(client) == root else set()


def _upward(topology: Topology, root: str, way: Way) -> bool:
    return len(topology.path(way[1], root)) < len(topology.path(way[0], root))


def class_of(topology: Topology, root: str, way: Way) -> Class | None:
    """Tier and direction of a link; None for that of a host at the root."""
    if root in way and set(way) & set(topology.hosts):
        return None
    lower = max(len(topology.path(end, root)) for end in way)
    return TIERS[lower - 1], "up" if _upward(topology, root, way) else "down"


def by_class(counts: LinkCounts, root: str) -> dict[Class, int]:
    """Bytes that links carried, by their class."""
    found = {(tier, direction): 0 for tier in TIERS for direction in ("up", "down")}
    for way, count in counts.by_way.items():
        if (of := class_of(counts.topology, root, way)) is not None:
            found[of] += count.sent_bytes
    return found


@dataclass(frozen=True)
class Load:
    """Bytes of one block over one link: its segments, and their acknowledgements the other way."""

    data: int
    acknowledgements: int

    @staticmethod
    def of(tcp: Written) -> Load:
        """As a chain's last host has them, which relays nothing."""
        last = tcp.pipeline[-1]
        return Load(tcp.links.into(last), tcp.links.out(last))

    def expected(self, topology: Topology, root: str, found: Ways) -> dict[Class, int]:
        """Bytes over the tree of copies by class; acknowledgements take the chain's way back all the same."""
        expected = {(tier, direction): 0 for tier in TIERS for direction in ("up", "down")}
        for of_each, crossed in ((self.data, found.tree), (self.acknowledgements, found.acknowledged)):
            for way in crossed:
                if (of := class_of(topology, root, way)) is not None:
                    expected[of] += of_each
        return expected


def measure(options: Options, plane: str, topology: Topology, size: int, result: Result) -> dict[str, list[Written]]:
    """The block from each client, as often as the plane needs."""
    found = {}
    hosts, runs = list(CLIENTS.values()), MIRRORED_RUNS if plane == mirrored.MIRROR else 1
    with mirrored.bench(options, NAME, plane, topology, size, result=result, writers=hosts, racks=True) as bench:
        for where, host in CLIENTS.items():
            found[where] = [one for _ in range(runs) for one in bench.write(REPLICATION, [host])]
            for one in found[where]:
                say(f"{plane}: {where}: {host} > {' > '.join(one.pipeline)}")
    return found


def run(options: Options) -> Result:
    """Both planes, one after the other."""
    names = {"paper": "equation 7", "limit": "at most", "tcp": "TCP here, its own pipeline", "paper_tcp": "the tree"}
    result = Result(NAME, ABOUT, headings=names)
    topology = topology_file.named(options.topology or "mr-tree")
    size = int(BLOCK_BYTES * options.scale)
    tcp, ours = (measure(options, plane, topology, size, result) for plane in mirrored.PLANES)
    mirrored.right(result)
    for where, client in CLIENTS.items():
        [chain] = tcp[where]
        compare(result, where, client, chain, median(client, chain, ours[where]))
    busy = (mirrored.processors([one for found in of.values() for one in found]) for of in (tcp, ours))
    result.rows.append(Row("processors of this machine busy", "% of time", None, *busy))
    saved = [row for row in result.rows if row.what.endswith("links saved")]
    lines = [
        Line("equation 7", [], [row.paper or 0.0 for row in saved]),
        Line("here", [], [row.ours or 0.0 for row in saved]),
    ]
    result.plots.append(Plot(NAME, "Traffic saved", "", "%", lines, [where.removeprefix("client ") for where in ours]))
    result.notes.append(
        f"{size} bytes; of {MIRRORED_RUNS} mirrored writes from each place the one in the middle, by what all "
        "links carried against its tree. HDFS draws a pipeline for each write, so what crosses is held against "
        "the links of its own, each with what stock TCP's chain has a link carry; acknowledgements go back along "
        "the chain on both planes. Equation 7 counts every link up but the client's own as saved; a client in a "
        "rack has its segments climb to where the others' branch off, which is the tree's own figure. Off a class "
        "of links is in percent of the block's bytes over the links of the tree in it, over one link where it has "
        "none"
    )
    return result


def blocks(load: Load, here: Ways, written: Written) -> float:
    """What all links carried that is not acknowledgements, in blocks over one link."""
    crossed = by_class(written.links, ROOT)
    return (sum(crossed.values()) - load.acknowledgements * len(here.chain)) / load.data


def median(client: str, tcp: Written, ours: Sequence[Written]) -> Written:
    """The write in the middle by what links carried against the tree's; of an even number the one above."""

    def against_tree(written: Written) -> float:
        here = ways(written.links.topology, ROOT, client, written.pipeline)
        return blocks(Load.of(tcp), here, written) / len(here.tree)

    return sorted(ours, key=against_tree)[len(ours) // 2]


def compare(result: Result, where: str, client: str, tcp: Written, ours: Written) -> None:
    """Rows and goals of one place of the client."""
    topology = tcp.links.topology
    load, here = Load.of(tcp), ways(topology, ROOT, client, ours.pipeline)
    expected = load.expected(topology, ROOT, here)
    crossed, stock = by_class(ours.links, ROOT), by_class(tcp.links, ROOT)
    data = blocks(load, here, ours)
    saved = 100 * (1 - data / len(here.chain))
    result.rows.append(Row(f"{where}: links saved", "%", 100 * len(here.climbed) / len(here.chain), None, saved))
    off = {}
    for of in expected:
        name = f"{where}: {', '.join(of)}"
        result.rows.append(Row(name, "MB", None, mb(stock[of]), mb(crossed[of]), paper_tcp=mb(expected[of])))
        links = sum(class_of(topology, ROOT, way) == of for way in here.tree)
        off[of] = 100 * (crossed[of] - expected[of]) / (load.data * max(1, links))
    # What relays send is judged as such: the tree has next to nothing there.
    relays = 100 * (crossed[UPLINKS] - expected[UPLINKS]) / (load.data * (len(ours.pipeline) - 1))
    worst = max(off.keys() - {UPLINKS}, key=lambda of: abs(off[of]))
    goals = {"the tree's links": 100 * (data / len(here.tree) - 1), f"the tree, {', '.join(worst)}": off[worst]}
    if where in AS_EQUATION_7:
        goals["equation 7"] = 100 * (data / here.equation_7 - 1)
    for what, percent in goals.items():
        goal(result, f"{where}: off {what}", "%", abs(percent), WITHIN)
    goal(result, f"{where}: sent by relays, against stock", "%", relays, SENT)
    result.detail.setdefault("pipelines", {})[where] = {"tcp": tcp.pipeline, "mirror": ours.pipeline}

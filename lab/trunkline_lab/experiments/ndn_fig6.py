"""Fig. 6 of the NDN paper: all traffic of a 1 GB write with 1 to 10 replicas, beside what no network can go below."""

from __future__ import annotations

from dataclasses import dataclass, field

from .. import replicas
from ..cluster import FSSHELL
from ..net import data_center, topology_file
from ..net.meter import LabBytes
from ..net.topology import Roles, Topology
from ..say import say
from ..transfer import BLOCK_BYTES
from . import writes
from .options import Options
from .plots import Line, Plot
from .result import DIRECTORY, Result, Row, mb, saved

NAME = "ndn-fig6"
ABOUT = "Fig. 6: traffic of a 1 GB write against replicas, with the multicast tree as the limit"
SCALE = 0.125
SIZE = 10**9
MOST = 10
ROLES = Roles("h1", ("h2", "h3", "h5", "h6", "h8", "h9", "h12", "h13", "h14", "h16"), ("h3",))

PAPER_GB = {10: (18.8, 10.9)}  # over TCP, over NDN; of the others its text has the saving alone
PAPER_SAVED = {3: -16.0, 10: -42.0}


@dataclass
class Series:
    """By number of replicas: bytes over the hosts' links and over all links, and the same of the multicast tree."""

    hosts: dict[int, int] = field(default_factory=dict)
    total: dict[int, int] = field(default_factory=dict)
    tree_hosts: dict[int, int] = field(default_factory=dict)
    tree_total: dict[int, int] = field(default_factory=dict)


def tree_bytes(topology: Topology, writer: str, blocks: list[tuple[int, list[str]]]) -> tuple[int, int]:
    """Bytes over hosts' links and over all when each (length, hosts) goes along its tree once, without any header."""
    hosts, total = 0, 0
    for length, targets in blocks:
        ways = topology.tree(writer, targets)
        total += length * len(ways)
        hosts += length * sum(bool(set(way) & set(topology.hosts)) for way in ways)
    return hosts, total


def measure(options: Options, plane: str, result: Result) -> Series:
    """Writes the file with 1 to 10 replicas on a plane."""
    topology = topology_file.named(options.topology or "paper-fig5")
    if options.topology is None:
        topology = topology.with_roles(ROLES)
    writer = topology.roles.clients[0]
    file = writes.source(NAME, max(1, int(SIZE * options.scale)))
    size, series = file.stat().st_size, Series()
    with data_center.rig(
        topology, plane, DIRECTORY / NAME / plane, lab=options.lab, racks=False, disk_bytes=2 * MOST * size
    ) as rig:
        for count in range(1, min(MOST, len(topology.roles.datanodes)) + 1):
            say(f"{plane}: put with {count} replicas")
            target = f"/file-{count}"
            cost = rig.put(file, target, count)
            result.faults += writes.faults(rig, target, file, count, cost)
            assert isinstance(cost.links, LabBytes)
            links = cost.links.links
            series.hosts[count] = sum(links.both(host) for host in topology.hosts)
            series.total[count] = links.total()
            lengths = [min(BLOCK_BYTES, size - at) for at in range(0, size, BLOCK_BYTES)]
            pipelines = [[node.host for node in block.pipeline] for block in replicas.blocks(rig.cluster, target)]
            blocks = list(zip(lengths, pipelines, strict=True))
            series.tree_hosts[count], series.tree_total[count] = tree_bytes(topology, writer, blocks)
            rig.cluster.client(FSSHELL, "-rm", "-skipTrash", target, name="rm")
    return series


def run(options: Options) -> Result:
    """Both planes, one after the other."""
    result = Result(NAME, ABOUT)
    tcp, ours = (measure(options, plane, result) for plane in data_center.PLANES)
    for n in ours.hosts:
        paper_tcp, paper = (1000 * options.scale * value for value in PAPER_GB[n]) if n in PAPER_GB else (None, None)
        limit = mb(ours.tree_hosts[n])
        what = f"{n} replicas: hosts' links"
        result.rows.append(Row(what, "MB", paper, mb(tcp.hosts[n]), mb(ours.hosts[n]), paper_tcp, limit))
        less = saved(tcp.hosts[n], ours.hosts[n])
        # With one replica, beside its writer, nothing but heartbeats crosses a link on either plane.
        if n > 1:
            result.rows.append(Row(f"{n} replicas: against TCP", "%", PAPER_SAVED.get(n), 0.0, less))
        if n in PAPER_SAVED and less > PAPER_SAVED[n]:
            result.faults.append(f"{n} replicas: saved {less:.1f}%, less than the paper's {PAPER_SAVED[n]:.0f}%")
        values = mb(tcp.total[n]), mb(ours.total[n])
        result.rows.append(Row(f"{n} replicas: all links", "MB", None, *values, limit=mb(ours.tree_total[n])))
    if options.scale != 1:
        result.notes.append(f"the paper's GB are times {options.scale}, as the file is")
    result.notes.append(
        "limit: each block once over every link of the tree from its writer to its replicas, no headers"
    )
    x = [float(n) for n in ours.hosts]
    lines = [
        Line("TCP here", x, [mb(v) for v in tcp.hosts.values()]),
        Line("Trunkline", x, [mb(v) for v in ours.hosts.values()]),
        Line("multicast tree", x, [mb(v) for v in ours.tree_hosts.values()], dashed=True),
    ]
    result.plots.append(Plot(NAME, "Traffic of a write over the hosts' links", "replicas", "MB", lines))
    return result

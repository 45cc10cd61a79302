"""Table 2 of the NDN paper: one block of 128 MB, 3 replicas; bytes of three active hosts and an idle one."""

from __future__ import annotations

from dataclasses import dataclass

from .. import replicas, transfer
from ..net import data_center, flows, topology_file
from ..net.meter import LabBytes
from ..say import say
from . import writes
from .options import Options
from .plots import Line, Plot
from .result import DIRECTORY, Result, Row, mb, saved

NAME = "ndn-table2"
ABOUT = "Table 2: one block of 128 MB, 3 replicas, 16 hosts: bytes out of and into each host"
REPLICATION = 3

# What the paper's hosts are, and its MB over TCP and over NDN.
PAPER = {
    "writer and first replica (H3)": (137.61, 140.24),
    "second replica (H5)": (268.21, 139.36),
    "third replica (H13)": (130.88, 139.39),
    "idle (H12)": (0.02, 2.81),
}
PAPER_TOTAL = (536.72, 421.81)
PAPER_SAVED = -21.4


@dataclass
class Seen:
    """One write: hosts in the order of PAPER."""

    hosts: list[str]
    links: LabBytes


def write_once(options: Options, plane: str, result: Result) -> Seen:
    """Writes the block on a plane."""
    topology = topology_file.named(options.topology or "paper-fig5")
    file = writes.source(NAME, max(1, int(transfer.BLOCK_BYTES * options.scale)))
    with data_center.rig(
        topology,
        plane,
        DIRECTORY / NAME / plane,
        lab=options.lab,
        racks=False,
        disk_bytes=REPLICATION * file.stat().st_size,
    ) as rig:
        say(f"{plane}: put of {file.stat().st_size >> 20} MiB")
        cost = rig.put(file, "/file", REPLICATION)
        result.faults += writes.faults(rig, "/file", file, REPLICATION, cost)
        pipeline = [node.host for node in replicas.blocks(rig.cluster, "/file")[0].pipeline]
        idle = [node.host for node in rig.cluster.datanodes if node.host not in pipeline]
        assert isinstance(cost.links, LabBytes)
        result.detail.setdefault("planes", {})[plane] = {
            "pipeline": pipeline,
            "seconds": round(cost.wall_s, 2),
            "cpu_s": {host: round(s, 2) for host, s in cost.cpu_s.items()},
            "links": cost.links.links.as_json(),
            "payload_by_category": flows.by_category(list(cost.links.flows.values())),
        }
        result.notes.append(f"{plane}: written through {', '.join(pipeline)}; idle: {', '.join(idle)}")
        return Seen([*pipeline, *idle[-1:]], cost.links)


def run(options: Options) -> Result:
    """Both planes, one after the other."""
    result = Result(NAME, ABOUT)
    tcp, ours = (write_once(options, plane, result) for plane in data_center.PLANES)
    both = [
        (what, mb(tcp.links.links.both(t)), mb(ours.links.links.both(o)))
        for what, t, o in zip(PAPER, tcp.hosts, ours.hosts, strict=False)
    ]
    for what, over_tcp, over_ours in both:
        paper_tcp, paper = (value * options.scale for value in PAPER[what])
        result.rows.append(Row(what, "MB", paper, over_tcp, over_ours, paper_tcp))
    total_tcp, total = sum(row[1] for row in both), sum(row[2] for row in both)
    paper_tcp, paper = (value * options.scale for value in PAPER_TOTAL)
    result.rows.append(Row("all four", "MB", paper, total_tcp, total, paper_tcp))
    result.rows.append(Row("all four, against TCP", "%", PAPER_SAVED, 0.0, saved(total_tcp, total), 0.0))
    for way in ("out", "in"):
        for what, t, o in zip(PAPER, tcp.hosts, ours.hosts, strict=False):
            counts = [
                mb(s.links.links.out(h) if way == "out" else s.links.links.into(h)) for s, h in ((tcp, t), (ours, o))
            ]
            result.rows.append(Row(f"{what}: {way}", "MB", None, *counts))
    result.rows.append(
        Row("links between routers", "MB", None, mb(tcp.links.links.core()), mb(ours.links.links.core()))
    )
    if options.scale != 1:
        result.notes.append(f"the paper's MB are times {options.scale}, as the block is")
    if saved(total_tcp, total) > PAPER_SAVED:
        result.faults.append(f"saved {saved(total_tcp, total):.1f}%, less than the paper's {PAPER_SAVED}%")
    if len(both) == len(PAPER) and both[-1][2] > PAPER["idle (H12)"][1]:
        result.faults.append(f"the idle host saw {both[-1][2]:.2f} MB, more than the paper's")
    result.plots.append(
        Plot(
            NAME,
            "One block, 3 replicas: bytes out of and into each host",
            "",
            "MB",
            [
                Line("paper, TCP", [], [value[0] * options.scale for value in PAPER.values()][: len(both)]),
                Line("paper, NDN", [], [value[1] * options.scale for value in PAPER.values()][: len(both)]),
                Line("TCP here", [], [row[1] for row in both]),
                Line("Trunkline", [], [row[2] for row in both]),
            ],
            groups=["H3", "H5", "H13", "H12 (idle)"][: len(both)],
        )
    )
    return result

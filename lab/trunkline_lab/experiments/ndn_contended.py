"""Four writers at once over a narrow core: links between routers at a quarter of the hosts' rate."""

from __future__ import annotations

from ..cluster import FSSHELL
from ..net import data_center, topology_file
from ..net.links import LinkCounts
from ..net.meter import LabBytes
from ..net.topology import LinkShape, Roles
from ..procs import Process, ProcessFailed, tail
from ..say import say
from ..transfer import BLOCK_BYTES, Cost
from . import writes
from .options import Options
from .plots import Line, Plot
from .result import DIRECTORY, Result, Row, mb

NAME = "ndn-contended"
ABOUT = "four writers at once, 3 replicas, links between routers at a quarter of the hosts' rate"
REPLICATION = 3
SIZE = 4 * BLOCK_BYTES  # of each writer, at scale 1
FILES = 16  # of each writer, of a block each: so many pipelines that both planes draw much the same mix
WRITERS = ("h3", "h5", "h12", "h13")
ROLES = Roles("h1", ("h3", "h5", "h8", "h12", "h13", "h16"), WRITERS)
TIMEOUT_S = 1800


def measure(options: Options, plane: str, result: Result) -> tuple[list[float], Cost]:
    """Seconds of each writer, and what they cost together."""
    topology = topology_file.named(options.topology or "paper-fig5")
    if options.topology is None:
        topology = topology.with_roles(ROLES)
    topology = topology.with_core_rate(LinkShape().rate_bit_s // 4)
    # Payload follows from its size: no two files are alike.
    sizes = [max(FILES, int(SIZE * options.scale) // FILES) - number for number in range(FILES)]
    files = [writes.source(NAME, size) for size in sizes]
    with data_center.rig(topology, plane, DIRECTORY / NAME / plane, lab=options.lab, racks=False) as rig:
        targets = {host: f"/from-{host}" for host in topology.roles.clients}
        ended: list[Process] = []
        rig.cluster.client(FSSHELL, "-mkdir", *targets.values(), name="mkdir")

        def all_at_once() -> Process:
            for host, target in targets.items():
                words = ["-D", f"dfs.replication={REPLICATION}", "-put", *map(str, files), target]
                ended.append(rig.cluster.start_client(FSSHELL, *words, name=f"put-{host}", host=host))
            for process in ended:
                if process.wait(TIMEOUT_S) != 0:
                    raise ProcessFailed(f"{process.name} failed; {process.log} ends:\n{tail(process.log)}")
            return max(ended, key=lambda process: process.wall_s or 0.0)

        say(f"{plane}: {len(targets)} puts at once")
        cost = rig.measure(all_at_once)
        for target in targets.values():
            for file in files:
                result.faults += writes.faults(rig, f"{target}/{file.name}", file, REPLICATION, None)
        if plane == "ndn" and cost.fallbacks():
            result.notes.append(f"ndn: went by TCP: {cost.fallbacks()}")
        return [process.wall_s or 0.0 for process in ended], cost


def run(options: Options) -> Result:
    """Both planes, one after the other."""
    result = Result(NAME, ABOUT)
    (tcp_s, tcp), (ours_s, ours) = (measure(options, plane, result) for plane in data_center.PLANES)
    for what, value in (("first", min), ("last", max)):
        result.rows.append(Row(f"{what} writer done", "s", None, value(tcp_s), value(ours_s)))
    result.rows.append(Row("writers' mean", "s", None, sum(tcp_s) / len(tcp_s), sum(ours_s) / len(ours_s)))
    assert isinstance(tcp.links, LabBytes)
    assert isinstance(ours.links, LabBytes)
    both = (tcp.links.links, ours.links.links)
    result.rows.append(Row("links between routers", "MB", None, *(mb(links.core()) for links in both)))
    result.rows.append(Row("all links", "MB", None, *(mb(links.total()) for links in both)))
    # HDFS draws the pipelines anew on each plane; this is what the drawn ones take at the least.
    fullest = [max(_seconds_at_rate(links).items(), key=lambda item: item[1]) for links in both]
    result.rows.append(Row("fullest link at its rate", "s", None, *(seconds for _, seconds in fullest)))
    result.rows.append(Row("packets dropped at full queues", "packets", None, *(links.drops() for links in both)))
    result.rows.append(Row("CPU, all hosts", "CPU-s", None, *(sum(c.cpu_s.values()) for c in (tcp, ours))))
    result.notes.append(f"each writer: {FILES} files, {int(SIZE * options.scale)} bytes")
    named = (f"{plane} {start} to {end}" for plane, ((start, end), _) in zip(data_center.PLANES, fullest, strict=True))
    result.notes.append(f"fullest link: {', '.join(named)}")
    lines = [Line("TCP here", [], sorted(tcp_s)), Line("Trunkline", [], sorted(ours_s))]
    groups = [f"{n}." for n in range(1, len(ours_s) + 1)]
    result.plots.append(Plot(NAME, "Completion of four writes at once, narrow core", "writer", "s", lines, groups))
    return result


def _seconds_at_rate(links: LinkCounts) -> dict[tuple[str, str], float]:
    """How long each way of each link is busy with what it has carried."""
    return {
        way: links.by_way[way].sent_bytes * 8 / link.shape.rate_bit_s
        for link in links.topology.links
        for way in (link.ends, link.ends[::-1])
    }

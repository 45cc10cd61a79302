"""Fig. 12 of the NDN paper: seconds of `-put` and `-cat` of 1 MB to 1 GB, with 3 and with 6 replicas."""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import dataclass, field

from .. import payload, transfer
from ..cluster import FSSHELL
from ..net import data_center, topology_file
from ..net.data_center import LabRig
from ..net.topology import Roles
from ..procs import Process, ProcessFailed, tail
from ..say import say
from . import writes
from .options import Options
from .plots import Line, Plot
from .result import DIRECTORY, Result, Row

NAME = "ndn-fig12"
ABOUT = "Fig. 12: seconds of -put and -cat of 1 MB to 1 GB, 3 and 6 replicas"
SIZES_MB = (1, 16, 128, 1000)
REPLICATIONS = (3, 6)
MB = 10**6
# The paper's clients are DataNodes. What h3 puts has its first replica beside it; h9 has no DataNode, so that all it
# reads comes over the network.
WRITER, READER = "h3", "h9"
ROLES = Roles("h1", ("h3", "h5", "h8", "h12", "h13", "h16"), (WRITER, READER))
TIMEOUT_S = 900

PAPER_PUT_S = {(1000, 3): (25.0, 50.0)}  # TCP, NDN; its text has no other seconds
PAPER_FASTEST_MB_S = {"put": (41.0, 21.0), "cat": (66.0, 47.0)}

Case = tuple[str, int, float]  # "put" or "cat", replicas, MB


@dataclass
class Timed:
    """Seconds on a plane."""

    seconds: dict[Case, float] = field(default_factory=dict)

    def fastest_mb_s(self, what: str) -> float:
        """The highest rate of all puts or of all cats."""
        return max(mb / seconds for (kind, _, mb), seconds in self.seconds.items() if kind == what)


def cat(rig: LabRig, path: str, host: str) -> tuple[transfer.Cost, str]:
    """`FsShell -cat`, measured, and the SHA-256 of what it printed."""
    digests: list[str] = []

    def work() -> Process:
        process = rig.cluster.start_client(FSSHELL, "-cat", path, name="cat", host=host, stdout=subprocess.PIPE)
        assert process.popen.stdout is not None
        digests.append(hashlib.file_digest(process.popen.stdout, "sha256").hexdigest())
        process.popen.stdout.close()
        if process.wait(TIMEOUT_S) != 0:
            raise ProcessFailed(f"{process.name} failed; {process.log} ends:\n{tail(process.log)}")
        return process

    return rig.measure(work), digests[0]


def measure(options: Options, plane: str, result: Result) -> Timed:
    """All files on a plane, those of one number of replicas together."""
    topology = topology_file.named(options.topology or "paper-fig5")
    if options.topology is None:
        topology = topology.with_roles(ROLES)
    clients, most = topology.roles.clients, len(topology.roles.datanodes)
    writer, reader = clients[0], clients[-1]
    timed = Timed()
    on_disk = int(max(REPLICATIONS) * sum(SIZES_MB) * options.scale * MB)
    with data_center.rig(
        topology, plane, DIRECTORY / NAME / plane, lab=options.lab, racks=False, disk_bytes=on_disk
    ) as rig:
        for replication in (count for count in REPLICATIONS if count <= most):
            say(f"{plane}: {replication} replicas")
            warm = f"/warm-{replication}"
            rig.put(writes.source(NAME, 4 * MB), warm, replication, host=writer, counts=False)
            cat(rig, warm, reader)
            paths = [warm]
            for mb in (size * options.scale for size in SIZES_MB):
                file, path = writes.source(NAME, max(1, int(mb * MB))), f"/file-{replication}-{mb:g}"
                put = rig.put(file, path, replication, host=writer)
                result.faults += writes.faults(rig, path, file, replication, put)
                read, digest = cat(rig, path, reader)
                if digest != payload.sha256(file):
                    result.faults.append(f"{plane}: {path}: -cat did not print what was put")
                doubts = transfer.doubts_of_read(plane, read, file.stat().st_size)
                result.faults += [f"{plane}: {path}: {doubt}" for doubt in doubts]
                timed.seconds["put", replication, mb] = put.wall_s
                timed.seconds["cat", replication, mb] = read.wall_s
                paths.append(path)
            rig.remove(*paths)
    return timed


def run(options: Options) -> Result:
    """Both planes, one after the other."""
    result = Result(NAME, ABOUT)
    tcp, ours = (measure(options, plane, result) for plane in data_center.PLANES)
    for case in sorted(ours.seconds, key=lambda case: (case[1], case[0] != "put", case[2])):
        what, replication, mb = case
        paper_tcp, paper = PAPER_PUT_S.get((round(mb), replication), (None, None)) if what == "put" else (None, None)
        title = f"-{what} {mb:g} MB, {replication} replicas"
        result.rows.append(Row(title, "s", paper, tcp.seconds[case], ours.seconds[case], paper_tcp))
        if paper is not None and ours.seconds[case] > paper:
            result.faults.append(f"{title}: {ours.seconds[case]:.1f} s, longer than the paper's {paper:.0f} s")
    for what, (paper_tcp, paper) in PAPER_FASTEST_MB_S.items():
        rates = tcp.fastest_mb_s(what), ours.fastest_mb_s(what)
        result.rows.append(Row(f"fastest -{what}", "MB/s", paper, *rates, paper_tcp))
    result.notes.append("seconds of the whole command, with its JVM's start; the paper's text has no more than these")
    result.plots += [_plot(what, tcp, ours) for what in ("put", "cat")]
    return result


def _plot(what: str, tcp: Timed, ours: Timed) -> Plot:
    lines = []
    for label, timed in (("TCP here", tcp), ("Trunkline", ours)):
        for replication in REPLICATIONS:
            points = {mb: s for (kind, count, mb), s in timed.seconds.items() if (kind, count) == (what, replication)}
            if points:
                lines.append(Line(f"{label}, {replication}", list(points), list(points.values()), timed is tcp))
    return Plot(f"{NAME}-{what}", f"fs -{what}, by number of replicas", "MB", "s", lines, log_x=True, log_y=True)

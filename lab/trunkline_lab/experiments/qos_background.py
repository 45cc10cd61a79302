"""A client's reads beside a storm: a DataNode is killed, and the others copy what it had to each other.

The client reads small pieces of a file over a link between two switches, which many of the copies take too. Once
without a storm, once in it without a policy, once with as few copies at a time as Hadoop makes by default (what an
operator has without a switch's help), once with a policy that serves clients' reads first.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from .. import qos_policy, replicas
from ..cluster import FSSHELL, QUICK_TO_NOTICE, Properties
from ..net import data_center, topology_file
from ..net.data_center import LabRig
from ..net.topology import Roles
from ..net.trace import LinkTrace, Way, busy_share
from ..procs import wait_until
from ..qos_policy import Queue
from ..read_latency import Reader, percentile
from ..say import say
from . import writes
from .options import Options
from .plots import Line, Plot
from .result import DIRECTORY, Result, Row

NAME = "qos-background"
ABOUT = "a client's reads while the blocks of a killed DataNode are copied: 2 GB of them at scale 1"
SCALE = 0.15
SIZE = 2 * 10**9  # on the DataNode that is killed, at scale 1
RATE_BIT_S = 100 * 10**6
PIECE_BYTES = 64 << 10
PIECES = 64
PAUSE_S = 0.01
QUIET_S = 20.0
FILE_BYTES = 16 * 10**6  # a block each
GOAL = 1.5
LIMIT_S = 600

# The reader's file is on h6 alone, two switches away from the reader; h4 is killed, whose copies are elsewhere.
READER, HOME, KILLED = "h8", "h6", "h4"
ROLES = Roles("h1", ("h2", "h3", "h4", "h5", "h6", "h7"), (READER, HOME, KILLED))
WAY: Way = ("s3", "s1")

# So that the NameNode notices a dead DataNode within seconds.
NOTICED: Properties = {
    **QUICK_TO_NOTICE,
    "dfs.namenode.reconstruction.pending.timeout-sec": "120",
    "dfs.client.socket-timeout": "60000",
}
# And has many blocks copied at once; Hadoop's own limits are 2, 4 and 2.
STORM: Properties = {
    **NOTICED,
    "dfs.namenode.replication.max-streams": "16",
    "dfs.namenode.replication.max-streams-hard-limit": "32",
    "dfs.namenode.replication.work.multiplier.per.iteration": "16",
}

NO_POLICY, FEW_COPIES, POLICY = "no policy", "few copies", "policy"

# Copies have at most two fifths of a port: what a host sends to two others still leaves room on its own link, whose
# queue no switch can put in order.
QUEUES = (
    Queue("interactive", 1, 10, 0, 40 * 10**6, RATE_BIT_S),
    Queue("normal", 0, 0, 3, 20 * 10**6, RATE_BIT_S),
    Queue("background", 2, 8, 7, 5 * 10**6, 40 * 10**6),
)
CATEGORIES = {"client-read": "interactive", "replication": "background"}


@dataclass
class Seen:
    """Reads of one kind: their seconds, and how busy the link and the machine were."""

    seconds: list[float]
    lasted_s: float
    full: float
    processors: float

    def at(self, percent: float) -> float:
        """A percentile, in milliseconds."""
        return 1000 * percentile(self.seconds, percent)


class Storm:
    """A cluster in which a DataNode holds `size` bytes, a client that reads, and the DataNode's end."""

    def __init__(self, lab: LabRig, size: int, result: Result) -> None:
        self._lab, self._result = lab, result
        self._hot = writes.source(NAME, PIECES * PIECE_BYTES)
        cluster = lab.cluster
        cluster.put(self._hot, "/hot", replication=1, host=HOME)
        self._files = [writes.source(NAME, FILE_BYTES - number) for number in range(max(1, size // FILE_BYTES))]
        cluster.client(FSSHELL, "-mkdir", "/bulk", name="mkdir", host=KILLED)
        words = ["-D", "dfs.replication=2", "-put", *map(str, self._files), "/bulk"]
        cluster.client(FSSHELL, *words, name="put", host=KILLED)
        self._reader = Reader(cluster, READER, "/hot", self._hot, piece_bytes=PIECE_BYTES, pause_s=PAUSE_S)

    def quiet(self) -> tuple[float, LinkTrace]:
        """Nothing but the reads, for a while."""
        with LinkTrace(self._lab.center.fabric, self._lab.topology) as trace:
            began = time.time()
            time.sleep(QUIET_S)
        return began, trace

    def breaks_out(self) -> tuple[float, LinkTrace]:
        """The DataNode is killed; returns when all blocks have their replicas again.

        The storm begins when the first block is being copied.
        """
        cluster = self._lab.cluster
        [killed] = [datanode for datanode in cluster.datanodes if datanode.host == KILLED]
        assert killed.process is not None
        held = sum(path.stat().st_size for path in replicas.data_directory(cluster, killed).rglob("blk_*"))
        self._result.detail.setdefault("killed_bytes", []).append(held)
        killed.process.kill()
        wait_until("the DataNode's death", lambda: self._missing() > 0, 60, pause_s=0.1)
        began = time.time()
        with LinkTrace(self._lab.center.fabric, self._lab.topology) as trace:
            wait_until("the end of copying", lambda: self._missing() == 0, LIMIT_S, pause_s=0.1)
        return began, trace

    def _missing(self) -> int:
        """Blocks with fewer replicas than they should have."""
        found = self._lab.cluster.jmx("Hadoop:service=NameNode,name=FSNamesystem")
        return int(found["LowRedundancyBlocks"]) + int(found["PendingReconstructionBlocks"])

    def reads(self, periods: list[tuple[float, LinkTrace]]) -> list[Seen]:
        """Ends the reader; its reads that began and ended in each period."""
        found, seen = self._reader.stop(), []
        for began, trace in periods:
            lasted = trace.samples[-1].at_s - trace.samples[0].at_s
            within = [r.took_s for r in found if began <= r.at_s - r.took_s and r.at_s <= began + lasted]
            seen.append(Seen(within, lasted, busy_share(trace.use()[WAY]), trace.processors_use()))
        return seen

    def check(self) -> None:
        """Each file of the killed DataNode has two replicas, byte for byte."""
        for file in self._files:
            self._result.faults += writes.faults(self._lab, f"/bulk/{file.name}", file, 2, None)


def measure(options: Options, kind: str, result: Result) -> list[Seen]:
    """The reads without and in a storm, on a fresh cluster."""
    topology = topology_file.named(options.topology or "qos-fig5")
    if options.topology is None:
        topology = topology.with_roles(ROLES).with_rates(RATE_BIT_S, RATE_BIT_S)
    size, extra = int(SIZE * options.scale), NOTICED if kind == FEW_COPIES else STORM
    directory = DIRECTORY / NAME / kind.replace(" ", "-")
    with data_center.rig(topology, "tcp", directory, lab=options.lab, extra=extra, disk_bytes=4 * size) as lab:
        controller = lab.center.controller
        assert controller is not None
        if kind == POLICY:
            controller.apply(
                qos_policy.text(topology, NAME, QUEUES, CATEGORIES, default="normal", rate_bit_s=RATE_BIT_S)
            )
            result.detail["modes"] = controller.modes()
        storm = Storm(lab, size, result)
        quiet = storm.quiet()
        say(f"{kind}: the DataNode at {KILLED} is killed")
        seen = storm.reads([quiet, storm.breaks_out()])
        storm.check()
    for what, of in zip(("quiet", "storm"), seen, strict=True):
        say(f"{what}: {len(of.seconds)} reads in {of.lasted_s:.1f} s, p50 {of.at(50):.1f} ms, p99 {of.at(99):.1f} ms")
    return seen


def _row(
    what: str, unit: str, figures: list[float | None], *, limit: float | None = None, ok: bool | None = None
) -> Row:
    """Of figures without a storm, in one, in one with Hadoop's own limits, and in one with the policy."""
    still, stormy, limited, ordered = figures
    return Row(what, unit, None, stormy, ordered, paper_tcp=still, mount=limited, limit=limit, ok=ok)


def run(options: Options) -> Result:
    """Without a policy, with Hadoop's own limits, then with a policy."""
    result = Result(NAME, ABOUT)
    result.headings = {
        "paper_tcp": "no storm",
        "tcp": "storm",
        "mount": "storm, Hadoop's own limits",
        "ours": "storm, policy",
        "limit": "at most",
    }
    (still, stormy), (_, limited), (still_again, ordered) = (
        measure(options, kind, result) for kind in (NO_POLICY, FEW_COPIES, POLICY)
    )
    for percent in (50, 99):
        figures = [of.at(percent) for of in (still, stormy, limited, ordered)]
        result.rows.append(_row(f"a read of 64 KiB, p{percent}", "ms", figures))
    quiet = _row("p99 without storm, with the policy in force", "ms", [still_again.at(99), None, None, None])
    result.rows.append(quiet)
    ratio = ordered.at(99) / still.at(99)
    what = "p99 in the storm with the policy, against no storm"
    figures = [None, *(of.at(99) / still.at(99) for of in (stormy, limited, ordered))]
    result.rows.append(_row(f"goal: {what}", "times", figures, limit=GOAL, ok=ratio <= GOAL))
    if ratio > GOAL:
        result.faults.append(f"{what}: {ratio:.2f} times, above {GOAL}")
    storms = (stormy, limited, ordered)
    full = [of.full for of in (still, *storms)]
    result.rows += [
        _row("reads", "reads", [float(len(of.seconds)) for of in (still, *storms)]),
        _row("until all blocks were copied", "s", [None, *(of.lasted_s for of in storms)]),
        _row("link between the switches at 90% of its rate or more", "% of time", full),
        _row("processors of this machine busy", "% of time", [of.processors for of in (still, *storms)]),
    ]
    few = [of for of in (still, *storms) if len(of.seconds) < 200]
    if few:
        result.faults.append(f"only {min(len(of.seconds) for of in few)} reads in a period, too few for a p99")
    result.detail["p"] = {
        name: {str(percent): of.at(percent) for percent in (50, 90, 95, 99, 100)}
        for name, of in (
            ("quiet", still),
            ("storm", stormy),
            ("storm, Hadoop's own limits", limited),
            ("quiet, policy", still_again),
            ("storm, policy", ordered),
        )
    }
    result.notes.append(
        f"the reader at {READER} reads from {HOME} over ports of {RATE_BIT_S / 1e6:g} Mbit/s; each block has two "
        f"replicas, one of them on {KILLED}, which is killed with {SIZE * options.scale / 1e6:g} MB; a DataNode "
        "sends 16 copies at a time, with Hadoop's own limits 2; the policy leaves copies 40 Mbit/s of a port"
    )
    shown = list(range(1, 101))
    lines = [
        Line(label, [float(percent) for percent in shown], [of.at(percent) for percent in shown], dashed)
        for label, of, dashed in (
            ("no storm", still, True),
            ("storm", stormy, False),
            ("storm, Hadoop's own limits", limited, False),
            ("storm, policy", ordered, False),
        )
    ]
    result.plots.append(Plot(NAME, "Reads beside re-replication", "percent of reads", "ms", lines, log_y=True))
    return result

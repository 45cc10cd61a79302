"""Fig. 5 of "Hadoop Acceleration in an OpenFlow-based Cluster": Hadoop's Sort beside cross traffic, in several queues.

Three switches with ports of 300 Mbit/s and queues of 50, 200 and 5 Mbit/s; RandomWriter writes, Sort sorts, and
SortValidator compares. Iperf's streams from one switch to another are the cross traffic. The paper's four experiments,
a fifth with dynamic control, and the same jobs without a policy, with and without cross traffic.
"""

from __future__ import annotations

import shutil
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from .. import qos_policy, sort_jobs
from ..controller import Controller, Settings
from ..jobs import Jobs
from ..net import topology_file
from ..net.data_center import LabRig, rig
from ..net.fabric import LabError
from ..net.topology import Topology
from ..net.trace import LinkTrace, busy_share
from ..procs import tail, wait_until
from ..qos_policy import CROSS_TRAFFIC_PORT, Queue
from ..say import say
from .options import Options
from .plots import Line, Plot
from .result import DIRECTORY, Result, Row

NAME = "qos-fig5"
ABOUT = "Fig. 5: Sort of 0.4 to 400 MB (4 GB at scale 1) beside iperf's streams, in queues of 50, 200 and 5 Mbit/s"
SCALE = 0.1
SIZES_MB = (0.4, 4.0, 40.0, 400.0, 4000.0)  # the largest at scale 1
RUNS = 3  # of the largest size, each condition's first validated; of the others one, below scale 1
STREAMS = 16
FROM, TO = "h8", "h9"  # hosts of the cross traffic, which have nothing else to do
PORT_BIT_S = 300 * 10**6
GOAL_MB, GOAL = 400.0, 1.10

# The paper's rates; its text calls the highest queue of experiment 4 q3, which is no other than q1.
QUEUES = (
    Queue("q0", 0, 0, 4, 50 * 10**6, 50 * 10**6),
    Queue("q1", 1, 10, 1, 200 * 10**6, 200 * 10**6),
    Queue("q2", 2, 8, 7, 5 * 10**6, 5 * 10**6),
)
DYNAMIC: Settings = {"dynamic": {"enabled": True, "queue": "q1"}}


@dataclass(frozen=True)
class Condition:
    """Under which a Sort runs: `categories` by queue (no policy where there are none), `default` for the others."""

    name: str
    about: str
    cross: bool
    categories: dict[str, str] = field(default_factory=dict)
    default: str = "q0"
    dynamic: bool = False


ALONE = Condition("alone", "no policy, no cross traffic", False)
CROSS = Condition("cross", "no policy, cross traffic", True)
PAPERS = (
    Condition("1", "experiment 1: all in q0, no cross traffic", False, {"iperf": "q0"}),
    Condition("2", "experiment 2: iperf in q2, the rest in q0", True, {"iperf": "q2"}),
    Condition("3", "experiment 3: shuffle in q1, iperf in q2, the rest in q0", True, {"shuffle": "q1", "iperf": "q2"}),
    Condition("4", "experiment 4: all in the highest queue, iperf too", True, {"iperf": "q1"}, "q1"),
    Condition("5", "experiment 5: stragglers lifted from q0 to q1, iperf in q2", True, {"iperf": "q2"}, dynamic=True),
)
CONDITIONS = (ALONE, CROSS, *PAPERS)
BASELINE, LIFTED = PAPERS[0], PAPERS[2]


QueueAt = tuple[str, int, int]  # datapath id, port, queue


@dataclass
class Seen:
    """Of Sorts of one size under one condition: seconds of each, and what was busy meanwhile."""

    seconds: list[float] = field(default_factory=list)
    validate_s: float = 0.0
    processors: list[float] = field(default_factory=list)
    fullest: list[float] = field(default_factory=list)  # percent of the time that the fullest link was full
    queues: list[float] = field(default_factory=list)  # percent of its maximum that the busiest queue sent on average
    decisions: int = 0

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def policy(topology: Topology, condition: Condition) -> str:
    """The policy file of a condition."""
    name = f"fig5-{condition.name}"
    return qos_policy.text(
        topology, name, QUEUES, condition.categories, default=condition.default, rate_bit_s=PORT_BIT_S
    )


class Bench:
    """A cluster on which Sort runs under one condition after the other."""

    def __init__(self, lab: LabRig, result: Result) -> None:
        assert lab.center.controller is not None
        self._lab, self._result = lab, result
        self._controller: Controller = lab.center.controller
        scratch = lab.cluster.directory / "scratch"
        scratch.mkdir(exist_ok=True)
        self._jobs = Jobs(lab.cluster, scratch)
        self._streams = 0

    def warm_up(self) -> None:
        """One Sort that does not count: the first of a cluster has its hosts load what all others find there."""
        sort_jobs.random_writer(self._jobs, int(SIZES_MB[0] * 1e6), "/warm-up")
        sort_jobs.sort(self._jobs, "/warm-up", "/warmed-up", len(self._lab.topology.roles.nodemanagers))

    def write(self, mb: float) -> float:
        """RandomWriter, without policy and cross traffic; returns its seconds."""
        return sort_jobs.random_writer(self._jobs, int(mb * 1e6), _source(mb))

    def sort(self, mb: float, condition: Condition, seen: Seen, *, validated: bool) -> None:
        """One Sort under a condition, measured; its records are counted, and `validated` without cross traffic."""
        target, topology = "/sorted", self._lab.topology
        before = len(self._controller.decisions()) if condition.dynamic else 0
        with self._in_force(condition):
            sent = self._sent()
            with self._cross_traffic(condition.cross), LinkTrace(self._lab.center.fabric, topology) as trace:
                seconds, wrong = sort_jobs.sort(self._jobs, _source(mb), target, len(topology.roles.nodemanagers))
            seen.queues += _busiest(sent, self._sent(), seconds)
            if condition.dynamic:
                seen.decisions += len(self._controller.decisions()) - before
        say(f"{mb:g} MB, {condition.about}: {seconds:.1f} s")
        self._result.faults += [f"{mb:g} MB, {condition.about}: {what}" for what in wrong]
        if validated:
            seen.validate_s, wrong = sort_jobs.validate(self._jobs, _source(mb), target)
            self._result.faults += [f"{mb:g} MB, {condition.about}: {what}" for what in wrong]
        self._jobs.shell("-rm", "-r", "-skipTrash", target)
        seen.seconds.append(seconds)
        seen.processors.append(trace.processors_use())
        seen.fullest.append(max(busy_share(steps) for steps in trace.use().values()))

    def _sent(self) -> dict[QueueAt, tuple[int, int]]:
        """Bytes that each queue of each port has sent, and the most that it may send in a second, in bits.

        The cross traffic's own, which is always full, is left out.
        """
        return {
            (queue["at"]["dpid"], queue["at"]["port"], queue["number"]): (queue["sent_bytes"], queue["max_bit_s"])
            for queue in self._controller.queues()
            if queue["categories"] != ["iperf"]
        }

    @contextmanager
    def _in_force(self, condition: Condition) -> Iterator[None]:
        """The condition's policy for the length of the block, shown to have effect by the controller's own probe."""
        if not condition.categories:
            yield
            return
        if condition.dynamic:
            self._controller.restart(DYNAMIC)
        self._controller.apply(policy(self._lab.topology, condition))
        self._result.detail.setdefault("modes", {})[condition.name] = self._controller.modes()
        try:
            yield
        finally:
            self._controller.clear()
            if condition.dynamic:
                self._controller.restart({})

    @contextmanager
    def _cross_traffic(self, wanted: bool) -> Iterator[None]:
        """Iperf's streams for the length of the block."""
        if not wanted:
            yield
            return
        stage, topology = self._lab.center.stage, self._lab.topology
        self._streams += 1
        port = ["-p", str(CROSS_TRAFFIC_PORT)]
        server = stage.start(f"iperf-server-{self._streams}", TO, ["iperf3", "-s", "--forceflush", *port])
        wait_until("iperf's server", lambda: "Server listening" in tail(server.log), 20, server)
        words = ["iperf3", "-c", topology.address(TO), *port, "-t", "86400", "-P", str(STREAMS)]
        client = stage.start(f"iperf-client-{self._streams}", FROM, words)
        try:
            yield
            if not client.running():
                self._result.faults.append(f"iperf's client ended before the Sort did; {client.log} says why")
        finally:
            client.stop()
            server.stop()


def run(options: Options) -> Result:
    """All conditions by turns, so that what drifts on the machine meets each of them."""
    if shutil.which("iperf3") is None:
        raise LabError("iperf3 is missing; install iperf3")
    result = Result(NAME, ABOUT)
    result.headings = {"tcp": "fastest", "ours": "median", "mount": "slowest", "limit": "at most"}
    topology = topology_file.named(options.topology or NAME)
    sizes = [mb for mb in SIZES_MB if mb <= max(SIZES_MB[0], SIZES_MB[-1] * options.scale)]
    seen = {(mb, condition.name): Seen() for mb in sizes for condition in CONDITIONS}
    written = {}
    on_disk = int(3 * 1e6 * (sum(sizes) + 2 * max(sizes)))
    with rig(topology, "tcp", DIRECTORY / NAME, lab=options.lab, disk_bytes=on_disk) as lab:
        bench = Bench(lab, result)
        bench.warm_up()
        for mb in sizes:
            written[mb] = bench.write(mb)
            say(f"{mb:g} MB: RandomWriter: {written[mb]:.1f} s")
            full = mb == max(sizes) or options.scale >= 1
            for number in range(RUNS if full else 1):
                for condition in CONDITIONS:
                    validated = number == 0 and (full or condition is ALONE)
                    bench.sort(mb, condition, seen[mb, condition.name], validated=validated)
    for mb in sizes:
        _rows(result, mb, written[mb], {c.name: seen[mb, c.name] for c in CONDITIONS})
    _goals(result, seen)
    _plot(result, sizes, seen)
    roles = topology.roles
    result.notes.append(
        f"{len(topology.hosts)} hosts on {len(topology.openflow)} switches: a master with NameNode, ResourceManager "
        f"and JobHistoryServer, {len(roles.datanodes)} with DataNode and NodeManager, 3 for cross traffic "
        f"({STREAMS} TCP streams from {FROM} to {TO})"
    )
    result.notes.append(f"sizes run: {', '.join(f'{mb:g} MB' for mb in sizes)}; the paper's figure has no numbers")
    return result


def _rows(result: Result, mb: float, written_s: float, seen: dict[str, Seen]) -> None:
    result.rows.append(Row(f"{mb:g} MB: RandomWriter", "s", None, None, written_s))
    for condition in CONDITIONS:
        of = seen[condition.name]
        spread = (min(of.seconds), of.median, max(of.seconds))
        result.rows.append(Row(f"{mb:g} MB: Sort, {condition.about}", "s", None, *spread[:2], mount=spread[2]))
    validated = [of.validate_s for of in seen.values()]
    result.rows.append(Row(f"{mb:g} MB: SortValidator", "s", None, None, statistics.median(filter(None, validated))))
    result.detail.setdefault("sorts", {})[f"{mb:g}"] = {
        condition.name: {**vars(seen[condition.name]), "about": condition.about} for condition in CONDITIONS
    }


def _goals(result: Result, seen: dict[tuple[float, str], Seen]) -> None:
    """Rows for what must hold, and what there is to compare."""
    sizes = {size for size, _ in seen}
    mb = GOAL_MB if GOAL_MB in sizes else max(sizes)
    alone, baseline = seen[mb, ALONE.name], seen[mb, BASELINE.name]
    ratio = seen[mb, LIFTED.name].median / baseline.median
    what = f"{mb:g} MB: experiment 3 (shuffle lifted, cross traffic) against experiment 1 (no cross traffic)"
    holds = ratio <= GOAL if mb == GOAL_MB else None  # what is smaller mostly starts JVMs
    result.rows.append(Row(f"goal: {what}", "times", None, None, ratio, limit=GOAL, ok=holds))
    if holds is False:
        result.faults.append(f"{what}: {ratio:.2f} times, above {GOAL}")
    for condition in CONDITIONS[1:]:
        times = seen[mb, condition.name].median / alone.median
        what = f"{mb:g} MB: {condition.about}, against no policy and no cross traffic"
        result.rows.append(Row(what, "times", None, None, times))
    for condition in CONDITIONS:
        of = seen[mb, condition.name]
        for what, percents in (
            ("time that the fullest link was at 90% of its rate or more", of.fullest),
            ("busiest queue of Hadoop's traffic, of its maximum", of.queues),
            ("processors of this machine busy", of.processors),
        ):
            if percents:
                figure = statistics.median(percents)
                result.rows.append(Row(f"{mb:g} MB: {condition.about}: {what}", "%", None, None, figure))
    if mb != GOAL_MB:
        result.notes.append(f"the goal is for {GOAL_MB:g} MB, which this scale leaves out, and is not judged")


def _plot(result: Result, sizes: list[float], seen: dict[tuple[float, str], Seen]) -> None:
    names = {ALONE.name: "no policy, no cross traffic", CROSS.name: "no policy, cross traffic"}
    lines = [
        Line(names.get(c.name, f"experiment {c.name}"), [], [seen[mb, c.name].median for mb in sizes])
        for c in CONDITIONS
    ]
    title = "Sort beside cross traffic, by the queues of its traffic"
    result.plots.append(Plot(NAME, title, "MB", "s", lines, groups=[f"{mb:g}" for mb in sizes]))


def _busiest(
    before: dict[QueueAt, tuple[int, int]], after: dict[QueueAt, tuple[int, int]], seconds: float
) -> list[float]:
    """What the busiest queue sent in that time, in percent of the most it may; nothing where there are no queues."""
    shares = [
        800 * (sent - before[at][0]) / (max_bit_s * seconds) for at, (sent, max_bit_s) in after.items() if at in before
    ]
    return [max(shares)] if shares else []


def _source(mb: float) -> str:
    return f"/random-{mb:g}"

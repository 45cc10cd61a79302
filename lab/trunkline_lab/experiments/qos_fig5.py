"""Fig. 5 of "Hadoop Acceleration in an OpenFlow-based Cluster": Hadoop's Sort beside cross traffic, in several queues.

Three switches with ports of 300 Mbit/s and queues of 50, 200 and 5 Mbit/s; RandomWriter writes, Sort sorts, and
SortValidator compares. Iperf's streams from one switch to another are the cross traffic of the paper's four
experiments, and of the same jobs without a policy.

Two more are ours. The paper's fixed queues slow all reducers alike, so that none is a straggler. In experiment 5 the
cross traffic goes to one worker's port instead, in the queue q0 that everything shares, and the reducer there is held
up alone: dynamic control lifts its shuffle to q1. Beside it stands the same without control. In experiment 6 rates are
what queues have at least and the port's what they have at most, shuffles first and iperf last, so that the Sort can be
held against the same ports with one queue and without cross traffic. Its ports have a fifth of the paper's rate:
traffic that fills 300 Mbit/s takes this machine's processors away from the Sort, which no queue gives back.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from .. import history, sort_jobs
from ..controller import Controller, Settings
from ..jobs import Jobs
from ..net import topology_file
from ..net.data_center import LabRig, rig
from ..net.fabric import LabError
from ..net.trace import LinkTrace, busy_share
from ..procs import tail, wait_until
from ..qos_policy import CROSS_TRAFFIC_PORT
from ..say import say
from . import qos_fig5_report
from .options import Options
from .qos_conditions import AWAY, CONDITIONS, RUNS, Condition, Seen, policy
from .result import DIRECTORY, Result

NAME = "qos-fig5"
ABOUT = "Fig. 5: Sort of 0.4 to 400 MB (4 GB at scale 1) beside iperf's streams, in queues of 50, 200 and 5 Mbit/s"
SCALE = 0.1
SIZES_MB = (0.4, 4.0, 40.0, 400.0, 4000.0)  # the largest at scale 1
STREAMS = 16
DYNAMIC: Settings = {"dynamic": {"enabled": True, "queue": qos_fig5_report.LIFTED_TO}}

QueueAt = tuple[str, int, int]  # datapath id, port, queue


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
        self._sizes: dict[float, int] = {}  # bytes of the first output, by size of the input

    def warm_up(self) -> None:
        """One Sort that does not count: the first of a cluster has its hosts load what all others find there."""
        sort_jobs.random_writer(self._jobs, int(SIZES_MB[0] * 1e6), "/warm-up")
        sort_jobs.sort(self._jobs, "/warm-up", "/warmed-up", len(self._lab.topology.roles.nodemanagers))

    def write(self, mb: float) -> float:
        """RandomWriter, without policy and cross traffic; returns its seconds."""
        return sort_jobs.random_writer(self._jobs, int(mb * 1e6), _source(mb))

    def sort(self, mb: float, condition: Condition, seen: Seen, *, validated: bool) -> None:
        """One Sort under a condition, measured and checked; `validated` by SortValidator, without cross traffic."""
        target, topology = "/sorted", self._lab.topology
        with self._in_force(condition):
            sent = self._sent()
            ports = topology.with_rates(condition.port_bit_s, condition.port_bit_s)
            with self._cross_traffic(condition.cross), LinkTrace(self._lab.center.fabric, ports) as trace:
                reduces = len(topology.roles.nodemanagers)
                found = sort_jobs.sort(self._jobs, _source(mb), target, reduces, condition.properties)
            seen.queues += _busiest(sent, self._sent(), found.took_s)
            if condition.dynamic:  # the controller began with this policy, and has decided of this Sort alone
                seen.decisions.append(self._controller.decisions()[::-1])
        what = f"{mb:g} MB, {condition.about}"
        say(f"{what}: {found.took_s:.1f} s")
        wrong = [*found.wrong, *self._written(mb, found.written_bytes)]
        if validated:
            seen.validate_s, more = sort_jobs.validate(self._jobs, _source(mb), target)
            wrong += more
        if condition.cross not in (None, AWAY):
            wrong += self._straggler(condition.cross[1], found.job, seen)
        self._result.faults += [f"{what}: {fault}" for fault in wrong]
        self._jobs.shell("-rm", "-r", "-skipTrash", target)
        seen.seconds.append(found.took_s)
        seen.processors.append(trace.processors_use())
        seen.fullest.append(max(busy_share(steps) for steps in trace.use().values()))

    def _written(self, mb: float, size: int) -> list[str]:
        """What is wrong with the size of an output: each has the first one's, which SortValidator sees."""
        first = self._sizes.setdefault(mb, size)
        return [] if size == first > 0 else [f"Sort's output has {size} bytes, the first one's {first}"]

    def _straggler(self, host: str, job: str, seen: Seen) -> list[str]:
        """Notes how long the slowest reducer fetched; what is wrong where none ran on the host that is held up."""
        historyserver = self._lab.topology.address(self._lab.topology.roles.historyserver)
        shuffles = history.shuffles(self._lab.cluster, historyserver, job)
        seen.shuffles.append(max(shuffle.took_s for shuffle in shuffles))
        return [] if any(shuffle.host == host for shuffle in shuffles) else [f"no reducer ran on {host}"]

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
        if condition.categories is None:
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
    def _cross_traffic(self, hosts: tuple[str, str] | None) -> Iterator[None]:
        """Iperf's streams from one host to the other for the length of the block."""
        if hosts is None:
            yield
            return
        source, target = hosts
        stage, topology = self._lab.center.stage, self._lab.topology
        self._streams += 1
        port = ["-p", str(CROSS_TRAFFIC_PORT)]
        server = stage.start(f"iperf-server-{self._streams}", target, ["iperf3", "-s", "--forceflush", *port])
        wait_until("iperf's server", lambda: "Server listening" in tail(server.log), 20, server)
        words = ["iperf3", "-c", topology.address(target), *port, "-t", "86400", "-P", str(STREAMS)]
        client = stage.start(f"iperf-client-{self._streams}", source, words)
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
    seen: qos_fig5_report.AllSeen = {}
    written = {}
    on_disk = int(3 * 1e6 * (sum(sizes) + 2 * max(sizes)))
    with rig(topology, "tcp", DIRECTORY / NAME, lab=options.lab, disk_bytes=on_disk) as lab:
        bench = Bench(lab, result)
        bench.warm_up()
        for mb in sizes:
            written[mb] = bench.write(mb)
            say(f"{mb:g} MB: RandomWriter: {written[mb]:.1f} s")
            for condition, validated in rounds(mb, sizes, options.scale):
                of = seen.setdefault((mb, condition.name), Seen())
                bench.sort(mb, condition, of, validated=validated)
    qos_fig5_report.report(result, sizes, written, seen)
    roles = topology.roles
    result.notes.append(
        f"{len(topology.hosts)} hosts on {len(topology.openflow)} switches: a master with NameNode, ResourceManager "
        f"and JobHistoryServer, {len(roles.datanodes)} with DataNode and NodeManager, 3 for cross traffic "
        f"({STREAMS} TCP streams from {AWAY[0]} to {AWAY[1]}, in experiment 5 to a worker)"
    )
    result.notes.append(f"sizes run: {', '.join(f'{mb:g} MB' for mb in sizes)}; the paper's figure has no numbers")
    result.notes.append(
        "checked: of each Sort the records it read and wrote, and its output's bytes against the first of that size; "
        "by SortValidator (records, bytes, order, the reducer of each) the first Sort under each condition at the "
        "goals' and the largest size, and the first of all at others"
    )
    return result


def rounds(mb: float, sizes: list[float], scale: float) -> Iterator[tuple[Condition, bool]]:
    """What is to be sorted at a size, in order, and whether SortValidator sees it: the first of each condition.

    The goals' size and the largest are sorted under all conditions, as often as these say; from scale 1 on all sizes
    are, `RUNS` times at least. Others are sorted once in the paper's experiments, and the first output is validated.
    """
    full = scale >= 1 or mb in (max(sizes), qos_fig5_report.judged_size(sizes))
    if not full:
        yield from ((condition, number == 0) for number, condition in enumerate(c for c in CONDITIONS if c.small))
        return
    least = RUNS if scale >= 1 else 1
    for number in range(max(condition.runs for condition in CONDITIONS)):
        for condition in CONDITIONS:
            if number < max(condition.runs, least):
                yield condition, number == 0


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

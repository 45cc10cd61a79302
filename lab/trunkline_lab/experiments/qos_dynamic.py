"""One straggling reducer behind a congested port: a sort alone, beside cross traffic, and with dynamic control.

A reducer on each host; the traffic goes to one of them and shares the shuffles' queue there, so that the job waits
for this reducer. With control its shuffle is lifted into a queue with a minimum of its own until it has caught up.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from .. import cross_traffic, history, qos_policy
from ..controller import Controller
from ..cross_traffic import CrossTraffic, Second
from ..history import Shuffle
from ..jobs import Jobs
from ..net import data_center, topology_file
from ..net.fabric import LabError
from ..net.topology import Topology
from ..procs import Stage
from ..qos_policy import Queue
from ..say import say
from ..workloads import EXAMPLES, TERA_ROW_BYTES
from .options import Options
from .plots import Line, Plot
from .qos_conditions import ONE_EACH
from .result import DIRECTORY, Result, Row

NAME = "qos-dynamic"
ABOUT = "one straggling reducer behind a congested port: a sort alone, beside cross traffic, and with dynamic control"
TOPOLOGY = "qos-dynamic"
TERASORT = f"{EXAMPLES}.terasort"
SIZE = 120 * 10**6  # at scale 1
RUNS = 3
MAPS = 10  # that each reducer fetches from: as many steps has its progress
RATE_BIT_S = 50_000_000
CROSS_BIT_S = 45_000_000
SOURCE, STRAGGLER = "h7", "h6"
QUEUES = (
    Queue("q0", 0, 0, 4, 10_000_000, RATE_BIT_S),
    Queue("lifted", 1, 10, 1, 35_000_000, RATE_BIT_S),
)
MINIMUM_OVER = 3  # seconds in a row, of which cross traffic must have its queue's minimum on average
MEASURED = 0.95  # of that minimum: where a second begins and ends is not known to a hundredth
WON_BACK_PERCENT = 50.0  # of what cross traffic costs, the least that control must win back
ALONE, CROSS, CONTROL = SITUATIONS = ("alone", "cross traffic", "cross traffic, control")


@dataclass(frozen=True)
class Run:
    """One sort. `arrived` is what cross traffic had each second; decisions are the oldest first."""

    took_s: float
    shuffles: list[Shuffle]
    decisions: list[dict[str, Any]] = field(default_factory=list)
    arrived: list[Second] = field(default_factory=list)

    def shuffle_s(self, host: str) -> float:
        """How long the reducer on a host fetched."""
        return max((one.took_s for one in self.shuffles if one.host == host), default=0.0)

    def lifted(self, host: str) -> list[str]:
        """Reducers on a host that were lifted."""
        into = [one["reducer"] for one in self.decisions if one["to_queue"] == QUEUES[1].name]
        there = {one.reducer for one in self.shuffles if one.host == host}
        return [reducer for reducer in into if reducer in there]

    def lifts(self, host: str) -> list[tuple[float, float]]:
        """From when until when reducers on a host were lifted, in Unix time; endless where not given back."""
        there = {one.reducer for one in self.shuffles if one.host == host}
        found, began = [], dict[str, float]()
        for one in self.decisions:
            if one["reducer"] not in there:
                continue
            if one["to_queue"] == QUEUES[1].name:
                began[one["reducer"]] = one["at_s"]
            elif one["reducer"] in began:
                found.append((began.pop(one["reducer"]), one["at_s"]))
        return [*found, *((at_s, math.inf) for at_s in began.values())]

    def least_during_lifts(self, host: str) -> float | None:
        """What cross traffic had at least while a reducer on a host was lifted, in Mbit/s: the lowest mean of
        `MINIMUM_OVER` seconds in a row, of fewer where a lift is shorter. None: no second of it lies within a lift.
        """
        lows = []
        for began, ended in self.lifts(host):
            rates = [second.mbit_s for second in self.arrived if began <= second.at_s <= ended]
            over = min(MINIMUM_OVER, len(rates))
            lows += [statistics.mean(rates[at : at + over]) for at in range(len(rates) - over + 1) if over]
        return min(lows, default=None)

    def left_lifted(self) -> list[str]:
        """Reducers that were lifted and not given back."""
        last = {one["reducer"]: one["to_queue"] for one in self.decisions}
        return [reducer for reducer, queue in last.items() if queue == QUEUES[1].name]


@dataclass(frozen=True)
class Bench:
    """What all sorts run on."""

    topology: Topology
    stage: Stage
    jobs: Jobs

    def sort(self, situation: str, number: int, controller: Controller, checksum: str) -> tuple[Run, list[str]]:
        """One sort in a situation, and what was wrong with it; its output is removed."""
        step = f"sort-{SITUATIONS.index(situation)}-{number}"
        words = [f"-Dmapreduce.job.reduces={len(self.topology.roles.nodemanagers)}"]
        words += ["-Dmapreduce.terasort.output.replication=1", "/in", f"/{step}"]
        before = len(controller.decisions())
        with self._traffic(situation, step) as traffic:
            log = self.jobs.run(step, f"{TERASORT}.TeraSort", *words)
            took_s = self.jobs.seconds()
            arrived = traffic.seconds() if traffic else []
        faults = [f"{step}: {fault}" for fault in self._validate(step, checksum)]
        now = controller.decisions()
        historyserver = self.topology.address(self.topology.roles.historyserver)
        shuffles = history.shuffles(self.jobs.cluster, historyserver, history.job_of(log))
        run = Run(took_s, shuffles, now[: len(now) - before][::-1], arrived)
        if not run.shuffle_s(STRAGGLER):
            faults.append(f"{step}: no reducer ran on {STRAGGLER}")
        say(f"{situation}: {took_s:.1f} s, the straggler fetched for {run.shuffle_s(STRAGGLER):.1f} s")
        return run, faults

    @contextmanager
    def _traffic(self, situation: str, step: str) -> Iterator[CrossTraffic | None]:
        """Other people's traffic, where the situation has some."""
        if situation == ALONE:
            yield None
            return
        with cross_traffic.flowing(
            self.stage,
            step,
            source=SOURCE,
            target=STRAGGLER,
            address=self.topology.address(STRAGGLER),
            bit_s=CROSS_BIT_S,
        ) as traffic:
            yield traffic

    def _validate(self, step: str, checksum: str) -> list[str]:
        """TeraValidate's word on the order, and whether the output has the input's rows."""
        report = f"/{step}-report"
        self.jobs.run(f"{step}-validate", f"{TERASORT}.TeraValidate", f"/{step}", report)
        said = self.jobs.read(f"{report}/part-r-*").decode().strip()
        self.jobs.shell("-rm", "-r", "-skipTrash", f"/{step}", report)
        return [] if said == f"checksum\t{checksum}" else [f"TeraValidate: {said[:400]!r}, not checksum {checksum}"]

    def generate(self, size: int) -> str:
        """The input; returns its checksum."""
        rows = max(1, size // TERA_ROW_BYTES)
        self.jobs.run("teragen", f"{TERASORT}.TeraGen", "-Dmapreduce.job.maps=5", str(rows), "/in")
        self.jobs.run("teraxsum", f"{TERASORT}.TeraChecksum", "/in", "/in-checksum")
        return self.jobs.read("/in-checksum/part-r-*").decode().strip()


def run(options: Options) -> Result:
    """All situations, `RUNS` sorts each, on one cluster; the controller starts again with dynamic control."""
    names = {"tcp": "cross traffic", "ours": "with control", "limit": "alone, or the goal"}
    result = Result(NAME, ABOUT, headings=names)
    topology = topology_file.named(options.topology or TOPOLOGY)
    size = int(SIZE * options.scale)
    directory = DIRECTORY / NAME
    runs: dict[str, list[Run]] = {}
    extra = {**ONE_EACH, "dfs.blocksize": str(block_bytes(size))}
    with data_center.rig(
        topology, "tcp", directory, lab=options.lab, racks=False, extra=extra, disk_bytes=6 * size
    ) as rig:
        bench = Bench(topology, rig.center.stage, Jobs(rig.cluster, directory / "scratch"))
        controller = rig.center.controller
        if controller is None:
            raise LabError(f"{topology.name} has no [[switch]] with openflow = true, which {NAME} is about")
        policy = qos_policy.text(
            topology, NAME, QUEUES, {"shuffle": QUEUES[0].name}, default=QUEUES[0].name, rate_bit_s=RATE_BIT_S
        )
        controller.apply(policy)
        checksum = bench.generate(size)
        for situation in SITUATIONS:
            if situation == CONTROL:
                controller.restart({"dynamic": {"enabled": True}})
            result.detail.setdefault("modes", {})[situation] = controller.modes()
            runs[situation] = []
            for number in range(1, RUNS + 1):
                found, faults = bench.sort(situation, number, controller, checksum)
                runs[situation].append(found)
                result.faults += faults
    report(result, runs)
    result.notes.append(
        f"{size / 1e6:g} MB, a reducer on each of {len(topology.roles.nodemanagers)} hosts; UDP of "
        f"{CROSS_BIT_S / 1e6:g} Mbit/s to one of them, ports of {RATE_BIT_S / 1e6:g} Mbit/s; medians of {RUNS} runs"
    )
    return result


def block_bytes(size: int) -> int:
    """So that the input has `MAPS` blocks or a little more; HDFS wants whole chunks of its checksums."""
    return max(1 << 20, size // MAPS // 512 * 512)


def report(result: Result, runs: dict[str, list[Run]]) -> None:
    """Rows, goals and what all is in detail."""
    jobs = {situation: [one.took_s for one in found] for situation, found in runs.items()}
    fetched = {situation: [one.shuffle_s(STRAGGLER) for one in found] for situation, found in runs.items()}
    for what, of in (("sort", jobs), ("the straggler's shuffle", fetched)):
        alone, cross, control = (statistics.median(of[situation]) for situation in SITUATIONS)
        result.rows.append(Row(f"{what}, median", "s", None, cross, control, limit=alone))
        won = 100 * (cross - control) / (cross - alone) if cross > alone else 0.0
        _goal(result, f"{what}: won back of what cross traffic costs, at least", "%", won, WON_BACK_PERCENT)
    with_control = runs[CONTROL]
    lifted = sum(bool(one.lifted(STRAGGLER)) for one in with_control)
    _goal(result, "runs in which the straggler is lifted", "runs", lifted, len(with_control))
    given_back = sum(bool(one.decisions) and not one.left_lifted() for one in with_control)
    _goal(result, "runs in which every lift is given back", "runs", given_back, len(with_control))
    carried = [
        statistics.mean(second.mbit_s for one in runs[name] for second in one.arrived) for name in (CROSS, CONTROL)
    ]
    result.rows.append(Row("cross traffic that arrives, mean", "Mbit/s", None, *carried))
    _minimum_kept(result, with_control)
    made = {name: sum(len(one.decisions) for one in found) for name, found in runs.items()}
    result.rows.append(
        Row("decisions of dynamic control, all runs", "", None, made[CROSS], made[CONTROL], limit=made[ALONE])
    )
    if made[ALONE] or made[CROSS]:
        result.faults.append("dynamic control decided while it was off")
    result.detail["runs"] = {name: [_detail(one) for one in found] for name, found in runs.items()}
    lines = [Line(name, [], of) for name, of in jobs.items()]
    groups = [f"run {number + 1}" for number in range(len(with_control))]
    result.plots.append(Plot(NAME, "A sort with one reducer behind a congested port", "", "s", lines, groups))


def _minimum_kept(result: Result, with_control: list[Run]) -> None:
    """The goal that nobody starves: of each run, the seconds in which the straggler was lifted."""
    what = f"cross traffic's queue has its minimum while the straggler is lifted, least {MINIMUM_OVER} s, at least"
    least = MEASURED * QUEUES[0].min_bit_s / 1e6
    lows = [one.least_during_lifts(STRAGGLER) for one in with_control]
    shown = [low for low in lows if low is not None]
    if len(shown) == len(lows):
        _goal(result, what, "Mbit/s", min(shown), least)
        return
    result.rows.append(Row(f"goal: {what}", "Mbit/s", None, None, min(shown, default=None), limit=least, ok=False))
    without = ", ".join(str(number) for number, low in enumerate(lows, 1) if low is None)
    result.faults.append(f"{what} {least:g} Mbit/s: not shown, no second of run {without} lies within a lift")


def _goal(result: Result, what: str, unit: str, found: float, least: float) -> None:
    holds = found >= least
    result.rows.append(Row(f"goal: {what}", unit, None, None, found, limit=least, ok=holds))
    if not holds:
        result.faults.append(f"{what} {least:g} {unit}: {found:.3g}")


def _detail(run_: Run) -> dict[str, Any]:
    return {
        "sort_s": run_.took_s,
        "shuffle_s": {shuffle.host: shuffle.took_s for shuffle in run_.shuffles},
        "decisions": run_.decisions,
        "cross": [vars(second) for second in run_.arrived],  # Mbit/s of frames
        "cross_least_lifted_mbit_s": run_.least_during_lifts(STRAGGLER),
    }

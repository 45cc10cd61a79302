"""Under which conditions `qos-fig5` sorts: policies, cross traffic, control; and what is seen of the Sorts. Pure."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field, replace
from typing import Any

from .. import qos_policy
from ..net.topology import Topology
from ..qos_policy import Queue

RUNS = 3
GOAL_RUNS = 5  # of what is held against each other: two Sorts alike differ by up to a tenth
PORT_BIT_S = 300 * 10**6
NARROW_BIT_S = 60 * 10**6  # a fifth, so that ports and not this machine's processors are what traffic shares

# The paper's rates; its text calls the highest queue of experiment 4 q3, which is no other than q1.
QUEUES = (
    Queue("q0", 0, 0, 4, 50 * 10**6, 50 * 10**6),
    Queue("q1", 1, 10, 1, 200 * 10**6, 200 * 10**6),
    Queue("q2", 2, 8, 7, 5 * 10**6, 5 * 10**6),
)
# A fifth of these rates as what queues have at least; what is left of a port goes by priority, so that none lies idle.
MINIMA = tuple(replace(queue, min_bit_s=queue.min_bit_s // 5, max_bit_s=NARROW_BIT_S) for queue in QUEUES)
ONE_QUEUE = (Queue("q0", 0, 0, 4, NARROW_BIT_S, NARROW_BIT_S),)

AWAY = ("h8", "h9")  # hosts that have nothing else to do, at two switches
AT_A_WORKER = ("h9", "h4")  # of one switch: no port but the worker's is congested

# A reducer on each host (of its memory there is room for one, also beside an ApplicationMaster, and for no two), all
# begun when the maps have ended: the worker that is held up has a reducer, and the others are what it lags behind.
# Tasks tell their progress each second, not every six. The output has one replica, on the reducer's host: copies
# through the congested port would hide the shuffle's part.
ONE_EACH = {
    "mapreduce.reduce.memory.mb": "768",
    "mapreduce.job.reduce.slowstart.completedmaps": "1.0",
    "mapreduce.task.progress-report.interval": "1000",
    "dfs.replication": "1",
}


@dataclass(frozen=True)
class Condition:
    """Under which a Sort runs: `categories` by queue (None: no policy), `default` for the others.

    `port_bit_s` is what a policy leaves of each port.

    `cross` are the hosts of the cross traffic, from one to the other. `runs` are those at the largest size below
    scale 1; `small`: it is run at smaller sizes too. `properties` are those of the job.
    """

    name: str
    about: str
    categories: dict[str, str] | None = None
    cross: tuple[str, str] | None = None
    default: str = "q0"
    queues: tuple[Queue, ...] = QUEUES
    port_bit_s: int = PORT_BIT_S
    runs: int = RUNS
    small: bool = False
    dynamic: bool = False
    properties: dict[str, str] = field(default_factory=dict)


ALONE = Condition("alone", "no policy, no cross traffic")
CROSS = Condition("cross", "no policy, cross traffic", cross=AWAY, runs=1)
PAPERS = (
    Condition("1", "experiment 1: all in q0, no cross traffic", {"iperf": "q0"}, runs=GOAL_RUNS, small=True),
    Condition("2", "experiment 2: iperf in q2, the rest in q0", {"iperf": "q2"}, AWAY, runs=1, small=True),
    Condition(
        "3",
        "experiment 3: shuffle in q1, iperf in q2, the rest in q0",
        {"shuffle": "q1", "iperf": "q2"},
        AWAY,
        runs=GOAL_RUNS,
        small=True,
    ),
    Condition(
        "4", "experiment 4: all in the highest queue, iperf too", {"iperf": "q1"}, AWAY, "q1", runs=1, small=True
    ),
)
UNCONTROLLED = Condition(
    "5, control off",
    "as experiment 5, without dynamic control",
    {"shuffle": "q0"},
    AT_A_WORKER,
    runs=1,
    properties=ONE_EACH,
)
CONTROLLED = replace(
    UNCONTROLLED,
    name="5",
    about="experiment 5: all in q0, iperf to a worker too; its shuffle is lifted to q1 by dynamic control",
    dynamic=True,
)
NARROW_ALONE = Condition(
    "narrow",
    "ports of 60 Mbit/s with one queue, no cross traffic",
    {},
    queues=ONE_QUEUE,
    port_bit_s=NARROW_BIT_S,
    runs=GOAL_RUNS,
)
NARROW_CROSS = replace(
    NARROW_ALONE,
    name="narrow, cross",
    about="ports of 60 Mbit/s with one queue, cross traffic",
    cross=AWAY,
    runs=1,
)
SHARED = Condition(
    "6",
    "experiment 6: ports of 60 Mbit/s, rates as minima, no maxima; shuffle in q1, iperf in q2, the rest in q0",
    {"shuffle": "q1", "iperf": "q2"},
    AWAY,
    queues=MINIMA,
    port_bit_s=NARROW_BIT_S,
    runs=GOAL_RUNS,
)
CONDITIONS = (ALONE, CROSS, *PAPERS, UNCONTROLLED, CONTROLLED, NARROW_ALONE, NARROW_CROSS, SHARED)
BASELINE, LIFTED = PAPERS[0], PAPERS[2]


@dataclass
class Seen:
    """Of Sorts of one size under one condition: seconds of each, and what was busy meanwhile."""

    seconds: list[float] = field(default_factory=list)
    validate_s: float = 0.0
    processors: list[float] = field(default_factory=list)
    fullest: list[float] = field(default_factory=list)  # percent of the time that the fullest link was full
    queues: list[float] = field(default_factory=list)  # percent of its maximum that the busiest queue sent on average
    shuffles: list[float] = field(default_factory=list)  # seconds of the slowest reducer's, where one is held up
    decisions: list[list[dict[str, Any]]] = field(default_factory=list)  # of each run with control, oldest first

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def times(self, other: Seen) -> float:
        """How long a Sort takes against the other's of the same turn: these run next to each other. The median."""
        return statistics.median(mine / theirs for mine, theirs in zip(self.seconds, other.seconds, strict=False))

    def lifted(self, queue: str) -> int:
        """How often control lifted a reducer into this queue."""
        return sum(decision["to_queue"] == queue for run in self.decisions for decision in run)


def policy(topology: Topology, condition: Condition) -> str:
    """The policy file of a condition that has one."""
    return qos_policy.text(
        topology,
        "fig5-" + condition.name.replace(", ", "-").replace(" ", "-"),
        condition.queues,
        condition.categories or {},
        default=condition.default,
        rate_bit_s=condition.port_bit_s,
    )

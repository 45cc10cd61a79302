"""A `Control` without switches: a leaf-spine network under a Hadoop job, for tests of what stands on it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from types import MappingProxyType

from trunkline_controller.control import (
    Alert,
    Applied,
    Decision,
    FlowState,
    FlowTotals,
    LinkLoad,
    NotNow,
    QueueMode,
    QueueState,
    Status,
)
from trunkline_controller.flows.entry import (
    FlowEntry,
    Match,
    Output,
    Owner,
    SetField,
    SetQueue,
    Table,
    ToGroup,
    cookie,
    owner_name,
)
from trunkline_controller.loop import LoopThread
from trunkline_controller.mirror.agents import AgentState, Poll, Told
from trunkline_controller.mirror.bridge import BridgePoll, BridgeState, BridgeTold, Update
from trunkline_controller.mirror.counts import MirrorCounts
from trunkline_controller.mirror.mirrors import Mirrors
from trunkline_controller.mirror.model import Hop, Limits, Pipeline
from trunkline_controller.mirror.pipelines import Pipelines
from trunkline_controller.mirror.settings import MirrorSettings
from trunkline_controller.net.topology import Dpid, End, Host, Link, Mac, Port, PortNo, Switch, Topology
from trunkline_controller.policy.model import (
    Category,
    Policy,
    PolicyError,
    PortClass,
    Problem,
    Queue,
    Role,
    Rule,
    Share,
)
from trunkline_controller.queues.wanted import QueuesReport, QueuesWanted

MBIT = 1_000_000
START_S = 1_790_000_000.0
SPINES, LEAVES, HOSTS = 2, 4, 3
QUEUES = {
    "bulk": Queue("bulk", 0, 0, 5),
    "shuffle": Queue("shuffle", 1, 10, 2),
    "control": Queue("control", 2, 46, 0),
}
CATEGORIES = {
    Category.SHUFFLE: "shuffle",
    Category.CLIENT_READ: "shuffle",
    Category.REPLICATION: "bulk",
    Category.OTHER: "bulk",
    Category.NAMENODE: "control",
    Category.RESOURCEMANAGER: "control",
}
TEXT = "name: paper\nqueues:\n  bulk: {}\n  shuffle: {}\n  control: {}\n"


def policy(name: str = "paper", text: str = TEXT) -> Policy:
    shares = {
        "bulk": Share(50 * MBIT, 300 * MBIT),
        "shuffle": Share(200 * MBIT, 300 * MBIT),
        "control": Share(5 * MBIT, 300 * MBIT),
    }
    return Policy(
        name=name,
        queues=QUEUES,
        port_classes={"all": PortClass("all", 300 * MBIT, shares)},
        categories=dict(CATEGORIES),
        rules=(
            Rule(Category.SHUFFLE, "tcp", source_port=13562),
            Rule(
                Category.REPLICATION,
                "tcp",
                source_role=Role.DATANODE,
                destination_role=Role.DATANODE,
                destination_port=9866,
            ),
            Rule(Category.NAMENODE, "tcp", destination_port=8020),
        ),
        roles={Role.DATANODE: ("10.0.0.1", "10.0.0.2")},
        default_queue="bulk",
        text=text,
    )


def leaf_spine(host_name: str = "leaf{}") -> Topology:
    """Leaf n has datapath id 0x10 + n, spine n 0x20 + n; ports 1 and 2 of a leaf go up, the others to hosts."""
    switches: dict[Dpid, Switch] = {}
    links, hosts = set(), {}

    def port(dpid: int, number: int, name: str) -> Port:
        return Port(PortNo(number), name, Mac(f"0e:00:00:00:{dpid:02x}:{number:02x}"), True, 300 * MBIT)

    for leaf in range(1, LEAVES + 1):
        dpid = Dpid(0x10 + leaf)
        ports = {PortNo(s): port(dpid, s, f"to-spine{s}") for s in range(1, SPINES + 1)}
        for n in range(1, HOSTS + 1):
            number = PortNo(SPINES + n)
            ports[number] = port(dpid, number, f"node{(leaf - 1) * HOSTS + n}")
            mac = Mac(f"0a:00:00:00:{leaf:02x}:{n:02x}")
            hosts[mac] = Host(mac, End(dpid, number), (f"10.0.{leaf}.{n}",))
        switches[dpid] = Switch(dpid, host_name.format(leaf), MappingProxyType(ports))
    for spine in range(1, SPINES + 1):
        dpid = Dpid(0x20 + spine)
        ports = {PortNo(leaf): port(dpid, leaf, f"to-leaf{leaf}") for leaf in range(1, LEAVES + 1)}
        switches[dpid] = Switch(dpid, f"spine{spine}", MappingProxyType(ports), 6)
        for leaf in range(1, LEAVES + 1):
            links.add(Link.between(End(Dpid(0x10 + leaf), PortNo(spine)), End(dpid, PortNo(leaf))))
    return Topology(MappingProxyType(switches), frozenset(links), MappingProxyType(hosts))


class FakeControl:
    """Keeps the promises of `Control`; what it answers may be set from outside."""

    def __init__(self, topology: Topology | None = None) -> None:
        self.known = leaf_spine() if topology is None else topology
        self.alerts: tuple[Alert, ...] = ()
        self.made: tuple[Decision, ...] = ()
        self.applied: tuple[Applied, ...] = ()
        self.in_force: tuple[Policy, Applied] | None = None
        self.role = "master"
        self.dynamic = False
        self.busy: frozenset[End] = frozenset()
        self.broken = False
        self.wanted = QueuesWanted(())
        self.reports: list[QueuesReport] = []
        self.mirrors_enabled = True
        self.bridges: tuple[BridgeState, ...] = ()
        self.bridge_told = BridgeTold(15.0, Update(0, None), announce=True)
        self.bridge_polls: list[tuple[BridgePoll, float]] = []
        self.pipelines = Pipelines(Limits())
        self.agents: tuple[AgentState, ...] = ()
        self.waited_s: list[float] = []
        self.watchers: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    def status(self) -> Status:
        if self.broken:
            raise RuntimeError("a secret of the controller's")
        return Status(
            self.role,
            START_S,
            True,
            len(self.known.switches),
            len(self.known.links),
            len(self.known.hosts),
            self.dynamic,
            self.alerts,
            len(self.made),
        )

    def topology(self) -> Topology:
        return self.known

    def loads(self) -> tuple[LinkLoad, ...]:
        return tuple(
            LinkLoad(
                End(dpid, number),
                285.0 * MBIT if End(dpid, number) in self.busy else (dpid * 7 + number * 13) % 100 * MBIT,
                300 * MBIT,
                0,
                (dpid * 5 + number * 11) % 60 * MBIT,
                1_000_000 * number,
                2_000_000 * number,
            )
            for dpid, switch in sorted(self.known.switches.items())
            for number in sorted(switch.ports)
        )

    def queues(self) -> tuple[QueueState, ...]:
        if self.in_force is None:
            return ()
        modes = (QueueMode.DSCP, QueueMode.DSCP, QueueMode.DSCP, QueueMode.UNKNOWN)
        return tuple(
            QueueState(
                End(dpid, number),
                queue.name,
                queue.number,
                queue.dscp,
                modes[(dpid + number) % 4],
                share.min_bit_s,
                share.max_bit_s,
                float((dpid + number * 3 + queue.number * 17) % 50 * MBIT),
                1000 * number + queue.number,
                queue.number,
                tuple(category for category, name in CATEGORIES.items() if name == queue.name),
                "not yet probed" if modes[(dpid + number) % 4] is QueueMode.UNKNOWN else "",
            )
            for dpid, switch in sorted(self.known.switches.items())
            for number in sorted(switch.ports)
            for queue in QUEUES.values()
            for share in (policy().port_classes["all"].shares[queue.name],)
        )

    def flows(self, dpid: Dpid) -> tuple[FlowState, ...]:
        switch = self.known.switches[dpid]
        found = [
            FlowState(dpid, FlowEntry(Table.ADMIT, 100, Match(eth_type=0x88CC), (), None, cookie(Owner.ADMIT)), 5, 300)
        ]
        if self.in_force is not None:
            match = Match(eth_type=0x800, ip_proto=6, l4_src=13562)
            actions = (SetQueue(1), SetField("ip_dscp", 10))
            entry = FlowEntry(Table.CLASSIFY, 1000, match, actions, Table.FORWARD, cookie(Owner.POLICY, 1))
            found.append(FlowState(dpid, entry, 9_000, 13_000_000, Category.SHUFFLE))
        for mac, host in self.known.hosts.items():
            local = host.at.dpid == dpid
            action = Output(host.at.port) if local else ToGroup(1) if dpid < 0x20 else Output(host.at.dpid - 0x10)
            entry = FlowEntry(Table.FORWARD, 10, Match(eth_dst=mac), (action,), None, cookie(Owner.FORWARD))
            found.append(FlowState(dpid, entry, 40, 50_000 + len(switch.ports)))
        return tuple(found)

    def flow_totals(self) -> tuple[FlowTotals, ...]:
        found = []
        for dpid in sorted(self.known.switches):
            entries: Counter[str] = Counter()
            octets: Counter[str] = Counter()
            for state in self.flows(dpid):
                entries[owner_name(state.entry.cookie)] += 1
                if state.category:
                    octets[state.category] += state.bytes
            found.append(FlowTotals(dpid, entries, octets))
        return tuple(found)

    def flows_of(self, link: Link) -> tuple[FlowState, ...]:
        if link not in self.known.links:
            raise KeyError(link)
        return tuple(
            state
            for end in (link.a, link.b)
            for state in self.flows(end.dpid)
            if Output(end.port) in state.entry.actions or ToGroup(1) in state.entry.actions
        )

    def check(self, text: str, name: str) -> Policy:
        if not text.startswith("name: "):
            raise PolicyError(
                (
                    Problem(name, 2, "queue 'fast' is not among the queues", "name one of: bulk, shuffle, control"),
                    Problem(name, 7, "minimum rates sum to 400 Mbit/s of 300", "lower them"),
                )
            )
        checked = policy(text.partition("\n")[0][6:], text)
        odd = (Problem(name, 3, "nothing is of category split", "leave it out"),) if "split" in text else ()
        return replace(checked, warnings=odd)

    def apply(self, text: str, name: str, by: str) -> tuple[Policy, Applied]:
        checked = self.check(text, name)
        return checked, self._put(checked, Applied(0, checked.name, START_S + 60, by, text, 84))

    def clear(self, by: str) -> Applied:
        return self._put(None, Applied(0, "", START_S + 90, by, "", 84))

    def _put(self, checked: Policy | None, applied: Applied) -> Applied:
        if self.role != "master":
            raise NotNow("another controller is master", "ask that one, or stop it")
        with self._lock:
            version = len(self.applied) + 1
            applied = Applied(version, applied.name, applied.at_s, applied.by, applied.text, applied.flows_changed)
            self.applied = (applied, *self.applied)
            self.in_force = None if checked is None else (checked, applied)
        return applied

    def policy(self) -> tuple[Policy, Applied] | None:
        return self.in_force

    def history(self) -> tuple[Applied, ...]:
        return self.applied

    def queues_wanted(self, dpids: tuple[Dpid, ...]) -> QueuesWanted:
        return self.wanted.of(dpids)

    def when_queues_change(self, call: Callable[[], None]) -> Callable[[], None]:
        self.watchers.append(call)
        return lambda: self.watchers.remove(call)

    def want(self, wanted: QueuesWanted) -> None:
        """Changes what agents are told, as another policy does."""
        self.wanted = wanted
        for call in list(self.watchers):
            call()

    def queues_reported(self, report: QueuesReport) -> None:
        self.reports.append(report)

    def decisions(self) -> tuple[Decision, ...]:
        return self.made

    def mirror_announce(self, hop: Hop, wait_s: float) -> Future[Pipeline]:
        answer: Future[Pipeline] = Future()
        self.waited_s.append(wait_s)
        self.pipelines.served(
            frozenset(a for host in self.known.hosts.values() for a in host.addresses), frozenset(), 0.0
        )
        self.pipelines.network(self.known, 0.0)
        try:
            if not self.mirrors_enabled:
                raise NotNow("mirroring is off", "set mirror.enabled = true in the controller's configuration")
            answer.set_result(self.pipelines.announce(hop, 0.0))
        except Exception as error:
            answer.set_exception(error)
        return answer

    def mirror_close(self, identity: str) -> Future[None]:
        answer: Future[None] = Future()
        try:
            self.pipelines.close(identity, 0.0)
            answer.set_result(None)
        except KeyError as error:
            answer.set_exception(error)
        return answer

    def mirror_poll(self, poll: Poll, wait_s: float) -> Future[Told]:
        answer: Future[Told] = Future()
        answer.set_exception(NotNow("mirroring is off", "set mirror.enabled = true in the controller's configuration"))
        return answer

    def mirror_lease_s(self) -> float:
        return 60.0

    def mirrors(self) -> tuple[Pipeline, ...]:
        return self.pipelines.all()

    def mirror_agents(self) -> tuple[AgentState, ...]:
        return self.agents

    def mirror_bridge_poll(self, poll: BridgePoll, wait_s: float) -> Future[BridgeTold]:
        answer: Future[BridgeTold] = Future()
        self.bridge_polls.append((poll, wait_s))
        answer.set_result(self.bridge_told)
        return answer

    def mirror_bridges(self) -> tuple[BridgeState, ...]:
        return self.bridges

    def mirror_counts(self) -> MirrorCounts:
        return MirrorCounts(
            self.mirrors_enabled, 60.0, {"announced": len(self.mirrors())}, refused={"one_replica": 2}, late=3
        )


class MirroringControl(FakeControl):
    """The same with mirroring as it is, but for switches: nothing is ever confirmed. `stop` ends its thread."""

    def __init__(self, **settings: float) -> None:
        super().__init__()
        self._loop = LoopThread()
        self.mirroring = Mirrors(MirrorSettings(enabled=True, **settings), dict)
        self._loop.start()
        self._loop.call(self._begin)

    def _begin(self) -> None:
        self.mirroring.role_changed(True)
        self.mirroring.network(self.known)

    def stop(self) -> None:
        self._loop.stop()

    def mirror_announce(self, hop: Hop, wait_s: float) -> Future[Pipeline]:
        return self._loop.submit(self.mirroring.announce(hop, wait_s))

    def mirror_close(self, identity: str) -> Future[None]:
        return self._loop.submit_call(lambda: self.mirroring.close(identity))

    def mirror_poll(self, poll: Poll, wait_s: float) -> Future[Told]:
        return self._loop.submit(self.mirroring.poll(poll, wait_s))

    def mirrors(self) -> tuple[Pipeline, ...]:
        return self.mirroring.all()

    def mirror_agents(self) -> tuple[AgentState, ...]:
        return self.mirroring.agents()

    def mirror_counts(self) -> MirrorCounts:
        return self.mirroring.counts()

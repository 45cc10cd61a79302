"""A policy and the ports that there are as the queues that each port should have. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ..net.topology import Dpid, End, Port, Switch, Topology, dpid_text
from ..policy.model import Policy, PortClass, Problem, Share, Toward
from ..policy.values import rate_text
from .wanted import PortQueues, QueuesWanted, QueueWanted

RESERVED = 0xFFFFFF00  # port numbers from here on are OpenFlow's own, such as LOCAL


def wanted(policy: Policy | None, topology: Topology, before: QueuesWanted | None = None) -> QueuesWanted:
    """The queues of all switches' ports; which of the switches it holds for is left to who knows their connections.

    Ports of no class have none, and neither has a port whose rate is known to nobody. A port where neither a link nor a
    host is known keeps what `before` gave it: a cable that was pulled for a moment changes no queue. Where there was
    nothing before, and the port's class depends on where its cable leads, which is not known yet, it is undecided.
    """
    if policy is None or not policy.port_classes:
        return QueuesWanted(())
    kept = {(End(port.dpid, port.port), port.name): port for port in before.ports} if before else {}
    cables, classes = _Cables.of(topology), _Classes(policy)
    by_direction = any(ports.toward for ports in policy.port_classes.values())
    found, undecided = [], set()
    for end, switch, port in _ports(topology):
        toward = cables.toward(end)
        ports = classes.of(switch, port, toward)
        if (end, port.name) in kept and not cables.known(end):
            found.append(kept[end, port.name])
        elif ports is not None:
            if (queues := queues_of(policy, ports, end, port)) is not None:
                found.append(queues)
        elif toward is None and by_direction:
            undecided.add((end.dpid, port.name))
    return QueuesWanted(tuple(found), undecided=frozenset(undecided))


def queues_of(policy: Policy, ports: PortClass, end: End, port: Port) -> PortQueues | None:
    """A port's queues; None where neither the policy nor the switch says the port's rate."""
    rate = ports.rate_bit_s or port.speed_bit_s
    if not rate:
        return None
    queues = []
    for queue in policy.queues.values():
        least, most = share_at(ports.shares[queue.name], rate)
        queues.append(QueueWanted(queue.name, queue.number, queue.dscp, queue.priority, least, most))
    default = policy.queues[policy.default_queue].number
    return PortQueues(end.dpid, end.port, port.name, rate, default, tuple(queues))


def share_at(share: Share, rate_bit_s: int) -> tuple[int, int]:
    """Minimum and maximum of a queue, in bits a second, of a port of this rate; none is above the port's."""
    least = share.min_bit_s if share.min_percent is None else int(rate_bit_s * share.min_percent / 100)
    most = share.max_bit_s if share.max_percent is None else int(rate_bit_s * share.max_percent / 100)
    return min(least, rate_bit_s), min(most or rate_bit_s, rate_bit_s)


def check(policy: Policy, topology: Topology, file: str) -> tuple[Problem, ...]:
    """What of a policy the connected switches' ports can't give; of each class the first port that has a fault."""
    found: dict[tuple[str, str], Problem] = {}
    cables, classes = _Cables.of(topology), _Classes(policy)
    for end, switch, port in _ports(topology):
        ports = classes.of(switch, port, cables.toward(end))
        if ports is None:
            continue
        name = f"{switch.name}/{port.name}"
        for kind, what, remedy in _faults(policy, ports, port, name):
            found.setdefault((ports.name, kind), Problem(file, ports.line or 1, what, remedy))
    return tuple(found.values())


def _faults(policy: Policy, ports: PortClass, port: Port, name: str) -> Iterator[tuple[str, str, str]]:
    rate = ports.rate_bit_s or port.speed_bit_s
    if not rate:
        yield "rate", f"port {name} does not say its rate", f"give port class {ports.name} a rate"
        return
    total = 0
    for queue, share in ports.shares.items():
        least = share.min_bit_s if share.min_percent is None else int(rate * share.min_percent / 100)
        most = share.max_bit_s if share.max_percent is None else int(rate * share.max_percent / 100)
        total += least
        if most and most < least:
            what = f"max of queue {queue} is {rate_text(most)} at port {name}, less than its min of {rate_text(least)}"
            yield "max", what, "raise max or lower min"
    if total > rate:
        what = f"minimum rates of port class {ports.name} sum to {rate_text(total)}, and port {name}"
        yield "sum", f"{what} has {rate_text(rate)}", "lower some of them, or give the port a class of its own"


def _ports(topology: Topology) -> Iterator[tuple[End, Switch, Port]]:
    for dpid, switch in sorted(topology.switches.items()):
        for number, port in sorted(switch.ports.items()):
            if number < RESERVED:
                yield End(Dpid(dpid), number), switch, port


class _Classes:
    """A policy's classes of ports, to be asked for many ports."""

    def __init__(self, policy: Policy) -> None:
        self._all = list(policy.port_classes.values())
        self._named: dict[str, int] = {}
        for position, ports in enumerate(self._all):
            for name in ports.ports:
                self._named.setdefault(name, position)

    def of(self, switch: Switch, port: Port, toward: Toward | None) -> PortClass | None:
        """One that names the port, else one whose glob matches it, else the one of what it is toward."""
        names = (port.name, f"{switch.name}/{port.name}", f"{dpid_text(switch.dpid)}/{port.name}")
        named = min((self._named[name] for name in names if name in self._named), default=None)
        if named is not None:
            return self._all[named]
        for ports in self._all:
            if ports.glob and any(fnmatchcase(name, ports.glob) for name in names):
                return ports
        return next((ports for ports in self._all if ports.toward and ports.toward == toward), None)


@dataclass(frozen=True)
class _Cables:
    """Which ports are cabled to what, as far as it is known."""

    link_ends: frozenset[End]
    host_ends: frozenset[End]
    edges: frozenset[End]

    @staticmethod
    def of(topology: Topology) -> _Cables:
        links = frozenset(end for link in topology.links for end in (link.a, link.b))
        return _Cables(links, frozenset(host.at for host in topology.hosts.values()), topology.edges)

    def toward(self, end: End) -> Toward | None:
        """None while that is being found out, or the port is down."""
        if end in self.link_ends:
            return Toward.SWITCHES
        return Toward.HOSTS if end in self.edges or end in self.host_ends else None

    def known(self, end: End) -> bool:
        """Whether something is at the other end."""
        return end in self.link_ends or end in self.host_ends

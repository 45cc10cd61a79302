"""Pipelines that are mirrored: hops are announced one by one, and what switches should have of each follows.

    announced --(all hops are known, a tree is found)--> arming --(its switches have confirmed)--> armed
        |                                                  |  ^                                      |
        |                                                  |  +--(the tree changed, a switch is new)-+
        +--(no tree, a limit, a broken chain)--> refused <-+--(a switch refuses)                     |
        |                                           |                                                |
        +------(closed, superseded, lease over)-----+------------------------------------------------+--> gone

No clock and no I/O: time comes in with what happens, entries come out by `take_changes`. Memory is bounded by `Limits`.
"""

from __future__ import annotations

import ipaddress
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from ..flows.entry import FlowEntry
from ..net.topology import Dpid, Host, Topology
from .counts import ArmTimes
from .entries import MAX_REPLICAS, Connection, entries, guard
from .model import OF_THE_NETWORK, WRITES, Changes, Hop, Limits, Pipeline, Refused, State, Why, parsed_id
from .tree import NoTree, Paths, Tree


class Pipelines:
    """All pipelines of a network. `armed`, `refused`, `swept`, `closed`, `superseded` count since the start."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.armed = self.swept = self.closed = self.superseded = 0
        self.refused: Counter[Why] = Counter()
        self.arm_times = ArmTimes()
        self._blocks: dict[tuple[str, int], Pipeline] = {}
        self._of_connection: dict[Connection, tuple[str, int]] = {}
        self._on_host: Counter[str] = Counter()  # pipelines by address
        self._entries: dict[Dpid, set[FlowEntry]] = {}
        self._changes = Changes()
        self._settled: list[Pipeline] = []
        self._topology: Topology | None = None
        self._paths: Paths | None = None
        self._guard: dict[Dpid, frozenset[FlowEntry]] = {}
        self._hosts: dict[str, Host] = {}
        self._unknown: set[str] = set()

    # What is there.

    def all(self) -> tuple[Pipeline, ...]:
        """Any thread may ask."""
        return tuple(self._blocks.copy().values())

    def get(self, identity: str) -> Pipeline:
        """Raises KeyError."""
        key, generation = parsed_id(identity)
        found = self._blocks[key]
        if found.generation != generation:
            raise KeyError(identity)
        return found

    def entries(self, dpid: Dpid) -> frozenset[FlowEntry]:
        """All that a switch should have for mirrors."""
        return frozenset(self._entries.get(dpid, ())) | self._guard.get(dpid, frozenset())

    def take_changes(self) -> Changes:
        """Of pipelines' entries, since it was last called; those that keep marks true come by `entries` alone."""
        changes, self._changes = self._changes, Changes()
        return changes

    def take_unknown(self) -> frozenset[str]:
        """Addresses of no known host that pipelines had, since it was last called."""
        unknown, self._unknown = self._unknown, set()
        return frozenset(unknown)

    def take_settled(self) -> list[Pipeline]:
        """Those that were armed, refused or removed since it was last called; the latter as they were."""
        settled, self._settled = self._settled, []
        return settled

    # What owners say.

    def announce(self, hop: Hop, now: float) -> Pipeline:
        """Takes a hop, or renews its pipeline's lease. Raises Refused."""
        try:
            return self._announce(hop, now)
        except Refused as error:
            self.refused[error.why] += 1
            raise

    def _announce(self, hop: Hop, now: float) -> Pipeline:
        _check(hop)
        key = hop.pool, hop.block
        known = self._blocks.get(key)
        if known is not None and known.generation > hop.generation:
            raise Refused(
                Why.OUTDATED,
                f"generation {known.generation} of block {hop.block} is announced, {hop.generation} is older",
            )
        if known is not None and (known.generation < hop.generation or known.replicas != hop.replicas):
            self._supersede(key)
            known = None
        if known is not None and known.hops.get(hop.position) == hop.connection:
            renewed = replace(known, until_s=now + self.limits.lease_s)
            self._blocks[key] = renewed
            if renewed.why in OF_THE_NETWORK and not renewed.missing:
                self._arm(key, now)
            return self._blocks[key]
        if (other := self._of_connection.get(hop.connection)) is not None and other != key:
            self._supersede(other)  # a connection carries one block's write; the older one's end was not told
        if known is None:
            self._make_room(hop)
            known = Pipeline(hop.pool, hop.block, hop.generation, hop.replicas, now, 0.0)
        self._put(key, known, hop, now)
        return self._blocks[key]

    def _make_room(self, hop: Hop) -> None:
        if len(self._blocks) >= self.limits.pipelines:
            raise Refused(
                Why.ALL_PIPELINES, f"{self.limits.pipelines} pipelines are announced, as many as mirror.max_pipelines"
            )
        self._check_hosts(hop.connection, ())

    def _check_hosts(self, connection: Connection, counted: tuple[str, ...]) -> None:
        for address in _addresses(connection):
            if address not in counted and self._on_host[address] >= self.limits.per_host:
                raise Refused(
                    Why.HOST_PIPELINES,
                    f"{self.limits.per_host} pipelines of host {address} are announced, as many as "
                    "mirror.max_pipelines_per_host",
                )

    def _put(self, key: tuple[str, int], known: Pipeline, hop: Hop, now: float) -> None:
        """A hop that is new, or has another connection than before."""
        before = _hosts_of(known)
        try:
            self._check_hosts(hop.connection, before)
        except Refused:
            if key in self._blocks:
                self._remove(key)
            raise
        if (old := known.hops.get(hop.position)) is not None:
            self._of_connection.pop(old, None)
        self._withdraw(known)
        hops = MappingProxyType({**known.hops, hop.position: hop.connection})
        made = replace(
            known, hops=hops, until_s=now + self.limits.lease_s, state=State.ANNOUNCED, why=None, what="",
            complete_s=None, armed_s=None, tree=None, entries=MappingProxyType({}), waits_for=frozenset(),
        )  # fmt: skip
        self._on_host.subtract(before)
        self._on_host.update(_hosts_of(made))
        self._forget_hosts(before)
        self._of_connection[hop.connection] = key
        self._blocks[key] = made
        if not made.missing:
            self._blocks[key] = replace(made, complete_s=now)
            self._arm(key, now)

    def close(self, identity: str) -> Pipeline:
        """The pipeline has ended. Raises KeyError."""
        found = self.get(identity)
        self._remove((found.pool, found.block))
        self.closed += 1
        return found

    def sweep(self, now: float) -> int:
        """Removes those whose lease is over; how many."""
        over = [key for key, pipeline in self._blocks.items() if pipeline.until_s <= now]
        for key in over:
            self._remove(key)
        self.swept += len(over)
        return len(over)

    def clear(self) -> None:
        """Another controller is master: all are its own."""
        for key in list(self._blocks):
            self._remove(key)

    # What the network says.

    def network(self, topology: Topology, now: float) -> bool:
        """It is now so. Trees that no longer fit are made anew; whether entries that keep marks true changed."""
        if topology is self._topology:
            return False
        before, self._topology = self._topology, topology
        changed = False
        if before is None or (before.switches.keys(), before.links) != (topology.switches.keys(), topology.links):
            self._paths = Paths(topology)
            made = guard(topology)
            changed, self._guard = made != self._guard, made
        elif before.hosts == topology.hosts:
            return False
        self._hosts = {address: host for host in topology.hosts.values() for address in host.addresses}
        for key, pipeline in list(self._blocks.items()):
            if not pipeline.missing and (pipeline.state is not State.REFUSED or pipeline.why in OF_THE_NETWORK):
                self._arm(key, now)
        return changed

    def confirmed(self, dpid: Dpid, has: frozenset[FlowEntry], now: float) -> None:
        """The switch has answered that it has these."""
        for key, pipeline in list(self._blocks.items()):
            if dpid in pipeline.waits_for and pipeline.entries[dpid] in has:
                waits_for = pipeline.waits_for - {dpid}
                self._blocks[key] = replace(pipeline, waits_for=waits_for)
                if not waits_for:
                    self._confirm(key, now)

    def waiting(self, dpid: Dpid) -> frozenset[FlowEntry]:
        """Entries that the switch has not confirmed."""
        return frozenset(p.entries[dpid] for p in self._blocks.values() if dpid in p.waits_for)

    def switch_refused(self, dpid: Dpid, refused: frozenset[FlowEntry], what: str) -> None:
        """The switch does not take these entries: what they belong to is not mirrored."""
        for key, pipeline in list(self._blocks.items()):
            if pipeline.entries.get(dpid) in refused:
                self._refuse(key, Refused(Why.SWITCH, what))

    def switch_anew(self, dpid: Dpid) -> None:
        """The switch has connected, perhaps without what it had: it confirms once more."""
        for key, pipeline in list(self._blocks.items()):
            if dpid in pipeline.entries:
                self._blocks[key] = replace(pipeline, state=State.ARMING, waits_for=pipeline.waits_for | {dpid})

    # Inside.

    def _arm(self, key: tuple[str, int], now: float) -> None:
        """Finds the tree of a pipeline whose hops are all known, and puts its entries where they belong."""
        pipeline = self._blocks[key]
        try:
            tree, trunk = self._tree(pipeline)
        except Refused as error:
            if pipeline.why is not error.why:
                self._refuse(key, error)
            return
        wanted = entries(tree, trunk, _number(pipeline))
        if wanted == pipeline.entries:
            self._blocks[key] = replace(pipeline, tree=tree)
            return
        self._withdraw(pipeline, keep=wanted)
        fresh = {dpid for dpid, entry in wanted.items() if pipeline.entries.get(dpid) != entry}
        for dpid in fresh:
            self._entries.setdefault(dpid, set()).add(wanted[dpid])
            self._changes.add(dpid, wanted[dpid])
        waits_for = (pipeline.waits_for & wanted.keys()) | fresh
        self._blocks[key] = replace(
            pipeline, state=State.ARMING, why=None, what="", tree=tree, entries=MappingProxyType(wanted),
            waits_for=frozenset(waits_for),
        )  # fmt: skip
        if not waits_for:
            self._confirm(key, now)

    def _confirm(self, key: tuple[str, int], now: float) -> None:
        pipeline = self._blocks[key]
        if pipeline.armed_s is None and pipeline.complete_s is not None:
            self.armed += 1
            self.arm_times.add(now - pipeline.complete_s)
        self._blocks[key] = replace(
            pipeline, state=State.ARMED, armed_s=now if pipeline.armed_s is None else pipeline.armed_s
        )
        self._settled.append(self._blocks[key])

    def _tree(self, pipeline: Pipeline) -> tuple[Tree, tuple[Connection, ...]]:
        """And the connections that are mirrored along it: without the first where it never leaves its host."""
        hops = [pipeline.hops[position] for position in range(1, pipeline.replicas + 1)]
        client: Host | None = None
        if not _is_within_a_host(hops[0]):
            client = self._host(hops[0].source)
        hosts = [self._host(hop.destination) for hop in hops[1:]]
        first = self._host(hops[1].source if client is None else hops[0].destination)
        replicas = [first, *hosts]
        for position, hop in enumerate(hops[1:], 1):
            if self._host(hop.source).mac != replicas[position - 1].mac:
                raise Refused(
                    Why.BROKEN_CHAIN,
                    f"hop {position + 1} comes from {hop.source}, which is not the host that hop {position} leads to, "
                    f"{hops[position - 1].destination}",
                )
        if len({host.mac for host in replicas}) < len(replicas):
            raise Refused(Why.SAME_HOST, "two replicas are on one host")
        if client is None or client.mac == first.mac:
            client, replicas, hops = first, replicas[1:], hops[1:]
            if len(replicas) == 1:
                raise Refused(Why.ONE_REPLICA, "only one replica is on another host than the client")
        if len({hop.is_ipv6 for hop in hops}) > 1:
            raise Refused(Why.MIXED_VERSIONS, "some of its connections are IPv4 and some IPv6")
        if self._paths is None:
            raise Refused(Why.NO_PATH, "no switch is connected")
        try:
            return self._paths.tree(client, replicas, _number(pipeline)), tuple(hops)
        except NoTree as error:
            raise Refused(Why.NO_PATH, str(error)) from error

    def _host(self, address: str) -> Host:
        try:
            return self._hosts[address]
        except KeyError:
            if len(self._unknown) < self.limits.pipelines:
                self._unknown.add(address)
            raise Refused(Why.UNKNOWN_HOST, f"no host with address {address} is known at any switch") from None

    def _refuse(self, key: tuple[str, int], why: Refused) -> None:
        self.refused[why.why] += 1
        pipeline = self._blocks[key]
        self._withdraw(pipeline)
        self._blocks[key] = replace(
            pipeline, state=State.REFUSED, why=why.why, what=why.what, tree=None, entries=MappingProxyType({}),
            waits_for=frozenset(),
        )  # fmt: skip
        self._settled.append(self._blocks[key])

    def _supersede(self, key: tuple[str, int]) -> None:
        self._remove(key)
        self.superseded += 1

    def _remove(self, key: tuple[str, int]) -> None:
        pipeline = self._blocks.pop(key)
        self._withdraw(pipeline)
        for connection in pipeline.hops.values():
            if self._of_connection.get(connection) == key:
                del self._of_connection[connection]
        hosts = _hosts_of(pipeline)
        self._on_host.subtract(hosts)
        self._forget_hosts(hosts)
        self._settled.append(pipeline)

    def _forget_hosts(self, addresses: tuple[str, ...]) -> None:
        for address in addresses:
            if self._on_host[address] <= 0:
                del self._on_host[address]

    def _withdraw(self, pipeline: Pipeline, keep: Mapping[Dpid, FlowEntry] = MappingProxyType({})) -> None:
        """Takes its entries away, other than those to `keep`."""
        for dpid, entry in pipeline.entries.items():
            if keep.get(dpid) != entry:
                of_switch = self._entries[dpid]
                of_switch.discard(entry)
                if not of_switch:
                    del self._entries[dpid]
                self._changes.remove(dpid, entry)


def _check(hop: Hop) -> None:
    """What can be said of a hop by itself. Raises Refused."""
    if not hop.client or hop.stage not in WRITES:
        raise Refused(Why.NOT_A_WRITE, "it is no client's write: re-replication and transfers are not mirrored")
    if hop.replicas < 2:
        raise Refused(Why.ONE_REPLICA, "a block with one replica has nothing to mirror")
    if hop.replicas > MAX_REPLICAS:
        raise Refused(Why.TOO_MANY_REPLICAS, f"{hop.replicas} replicas are more than {MAX_REPLICAS}, the most")
    if not 1 <= hop.position <= hop.replicas:
        raise Refused(Why.BROKEN_CHAIN, f"position {hop.position} is not one of 1 to {hop.replicas}")


def _is_within_a_host(connection: Connection) -> bool:
    return connection.source == connection.destination or ipaddress.ip_address(connection.destination).is_loopback


def _addresses(connection: Connection) -> tuple[str, ...]:
    return (connection.source, connection.destination)


def _hosts_of(pipeline: Pipeline) -> tuple[str, ...]:
    return tuple(dict.fromkeys(address for hop in pipeline.hops.values() for address in _addresses(hop)))


def _number(pipeline: Pipeline) -> int:
    """Of a pipeline's name alone, so that another controller finds its entries the same."""
    return zlib.crc32(pipeline.id.encode())

"""Pipelines that are mirrored: hops are announced one by one, and what switches should have of each follows.

    announced --(all hops are known, a tree and agents are found)--> arming --(switches have confirmed)--> armed
        |  ^                                               |  ^                                             |
        |  |                                               |  +--(the tree changed, a switch is new)--------+
        |  +--(hosts have room, hops are missing)--+       |                                                |
        |                                          |       |                                                |
        +--(no room, tree, agent; broken chain)-> refused <+--(a switch refuses, an agent leaves)-----------+
        |                                           |                                                       |
        +------(closed, superseded, lease over)-----+-------------------------------------------------------+--> gone

No clock and no I/O: time comes in with what happens, entries come out by `take_changes`. Memory is bounded by `Limits`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from types import MappingProxyType

from ..flows.entry import FlowEntry
from ..net.topology import Dpid, Topology
from .counts import ArmTimes
from .entries import MAX_REPLICAS, Connection, entries
from .model import OF_THE_NETWORK, WRITES, Changes, Head, Hop, Limits, Pipeline, Refused, State, Why, parsed_id
from .places import Places, number

Key = tuple[str, int]  # block pool and block id


class Pipelines:
    """All pipelines of a network. `armed`, `refused`, `swept`, `closed`, `superseded` count since the start."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.armed = self.swept = self.closed = self.superseded = 0
        self.refused: Counter[Why] = Counter()
        self.arm_times = ArmTimes()
        self._blocks: dict[Key, Pipeline] = {}
        self._of_connection: dict[Connection, Key] = {}
        self._of_host: dict[str, dict[Key, None]] = {}  # by address: those that have a place there
        self._roomless: dict[str, dict[Key, None]] = {}  # those without, by a host that is full, the oldest first
        self._freed: set[str] = set()  # hosts at which there may be room for them now
        self._waiting: dict[Dpid, set[Key]] = {}  # those for which a switch has not confirmed
        self._entries: dict[Dpid, set[FlowEntry]] = {}
        self._changes = Changes()
        self._settled: list[Pipeline] = []
        self._touched: set[str] = set()
        self._ended: set[str] = set()
        self._served: frozenset[str] = frozenset()  # addresses of hosts with an agent
        self._places = Places(limits.pipelines)

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

    def has(self, pipeline: Pipeline) -> bool:
        """As it is, unchanged."""
        return self._blocks.get((pipeline.pool, pipeline.block)) is pipeline

    def entries(self, dpid: Dpid) -> frozenset[FlowEntry]:
        """All that a switch should have for mirrors."""
        return frozenset(self._entries.get(dpid, ())) | self._places.guard.get(dpid, frozenset())

    def of(self, addresses: Collection[str]) -> tuple[Pipeline, ...]:
        """Those that have an end of a hop at one of these addresses, and do not wait for room."""
        keys = {key for address in addresses for key in self._of_host.get(address, ())}
        return tuple(self._blocks[key] for key in sorted(keys))

    def take_changes(self) -> Changes:
        """Of pipelines' entries, since it was last called; those that keep marks true come by `entries` alone."""
        changes, self._changes = self._changes, Changes()
        return changes

    def take_unknown(self) -> frozenset[str]:
        """Addresses of no known host that pipelines had, since it was last called."""
        return self._places.take_unknown()

    def take_touched(self) -> frozenset[str]:
        """Addresses of replicas whose agents are told something else since it was last called, other than by an end."""
        touched, self._touched = self._touched, set()
        return frozenset(touched)

    def take_ended(self) -> frozenset[str]:
        """Addresses of replicas whose pipeline was removed since it was last called; that is in no hurry."""
        ended, self._ended = self._ended, set()
        return frozenset(ended)

    def take_settled(self) -> list[Pipeline]:
        """Those that were armed, refused or removed since it was last called; the latter as they were."""
        settled, self._settled = self._settled, []
        return settled

    # What owners say.

    def announce(self, hop: Hop, now: float) -> Pipeline:
        """Takes a hop, or renews its lease. Raises Refused."""
        try:
            return self._announce(hop, now)
        except Refused as error:
            self.refused[error.why] += 1
            raise
        finally:
            self._use_room(now)

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
            renewed = replace(known, leases=self._renewed(known, hop, now))
            self._blocks[key] = renewed
            if renewed.why in OF_THE_NETWORK and not renewed.missing:
                self._arm(key, now)
            return self._blocks[key]
        if (other := self._of_connection.get(hop.connection)) is not None and other != key:
            self._supersede(other)  # a connection carries one block's write; the older one's end was not told
        if known is None:
            self._make_room(hop)
            known = Pipeline(hop.pool, hop.block, hop.generation, hop.replicas, now)
        self._put(key, known, hop, now)
        return self._blocks[key]

    def _make_room(self, hop: Hop) -> None:
        if len(self._blocks) >= self.limits.pipelines:
            raise Refused(
                Why.ALL_PIPELINES, f"{self.limits.pipelines} pipelines are announced, as many as mirror.max_pipelines"
            )
        if (full := self._full(_addresses(hop.connection))) is not None:
            raise self._no_room(full)

    def _full(self, addresses: Collection[str]) -> str | None:
        """The first of these hosts that has no room."""
        return next((a for a in addresses if len(self._of_host.get(a, ())) >= self.limits.per_host), None)

    def _no_room(self, address: str) -> Refused:
        return Refused(
            Why.HOST_PIPELINES,
            f"{self.limits.per_host} pipelines of host {address} are announced, as many as "
            "mirror.max_pipelines_per_host",
        )

    def _put(self, key: Key, known: Pipeline, hop: Hop, now: float) -> None:
        """A hop that is new, or has another connection than before."""
        old = known.hops.get(hop.position)
        if key in self._blocks:
            self._withdraw(known)
            self._wait(key, frozenset())
        hops = MappingProxyType({**known.hops, hop.position: hop.connection})
        if old is not None and old not in hops.values():
            del self._of_connection[old]
        made = replace(
            known, hops=hops, leases=self._renewed(known, hop, now), state=State.ANNOUNCED, why=None, what="",
            complete_s=None, armed_s=None, tree=None, entries=MappingProxyType({}), waits_for=frozenset(), lead=1,
            began=None if known.began is not None and known.began.connection == old else known.began,
        )  # fmt: skip
        self._unlist(key, known)
        self._of_connection[hop.connection] = key
        self._blocks[key] = made
        self._list(key, now)

    def _list(self, key: Key, now: float) -> None:
        """Gives it a place at each of its hosts, and arms it if its hops are all known. Where a host has no room it
        waits for that, refused, and takes up none at the others: who opened its connections has announced them, and
        would not soon again.
        """
        pipeline = self._blocks[key]
        hosts = _hosts_of(pipeline)
        if (full := self._full(hosts)) is not None:
            self._roomless.setdefault(full, {})[key] = None
            error = self._no_room(full)
            if pipeline.why is not error.why:
                self._refuse(key, error)
            else:
                self._blocks[key] = replace(pipeline, what=error.what)
            return
        for address in hosts:
            self._of_host.setdefault(address, {})[key] = None
        complete_s = None if pipeline.missing else now
        self._blocks[key] = replace(pipeline, state=State.ANNOUNCED, why=None, what="", complete_s=complete_s)
        if not pipeline.missing:
            self._arm(key, now)

    def _use_room(self, now: float) -> None:
        """Those that waited for the room that there is now have it, the oldest first."""
        freed, self._freed = self._freed, set()
        for address in sorted(freed):
            for key in tuple(self._roomless.get(address, ())):
                if self._full((address,)) is not None:
                    break
                _drop(self._roomless, address, key)
                self._list(key, now)

    def _renewed(self, known: Pipeline, hop: Hop, now: float) -> Mapping[int, float]:
        return MappingProxyType({**known.leases, hop.position: now + self.limits.lease_s})

    def close(self, identity: str, now: float) -> Pipeline:
        """The pipeline has ended. Raises KeyError."""
        found = self.get(identity)
        self._remove((found.pool, found.block))
        self.closed += 1
        self._use_room(now)
        return found

    def sweep(self, now: float) -> int:
        """Removes those whose lease is over; how many."""
        over = [key for key, pipeline in self._blocks.items() if pipeline.until_s <= now]
        for key in over:
            self._remove(key)
        self.swept += len(over)
        self._use_room(now)
        return len(over)

    def clear(self) -> None:
        """Another controller is master: all are its own, and so are agents."""
        self._served = frozenset()
        for key in list(self._blocks):
            self._remove(key)
        self._freed.clear()

    # What agents say.

    def served(self, came: frozenset[str], gone: frozenset[str], now: float) -> None:
        """At these addresses there is an agent now, at those none any more."""
        self._served = (self._served | came) - gone
        for pipeline in self.of(came | gone):
            if pipeline.is_live or pipeline.why is Why.NO_AGENT:
                self._arm((pipeline.pool, pipeline.block), now)

    def head(self, head: Head, addresses: Collection[str]) -> None:
        """The agent at these addresses says where the stream begins in a connection. It is taken of the one that is
        copied now, from the host that it leads to: what is said of an earlier one is no longer so.
        """
        try:
            pipeline = self.get(head.id)
        except KeyError:
            return
        if pipeline.missing or pipeline.hops[pipeline.lead] != head.connection:
            return
        if head.connection.destination not in addresses:
            return
        key = pipeline.pool, pipeline.block
        if pipeline.head is None:
            self._blocks[key] = replace(pipeline, began=head)
            if pipeline.is_live:
                self._touch(pipeline, after=pipeline.lead)
        elif pipeline.head != head.zero and pipeline.why is not Why.TWO_HEADS:
            what = f"its agent said that the stream begins at {pipeline.head}, then at {head.zero}"
            self._refuse(key, Refused(Why.TWO_HEADS, what))

    def failed(self, identity: str, what: str, addresses: Collection[str]) -> None:
        """The agent at these addresses can't take its part in a live pipeline."""
        try:
            pipeline = self.get(identity)
        except KeyError:
            return
        if pipeline.is_live and any(hop.destination in addresses for hop in pipeline.mirrored.values()):
            self._refuse((pipeline.pool, pipeline.block), Refused(Why.AGENT, what))

    # What the network says.

    def network(self, topology: Topology, now: float) -> None:
        """It is now so: trees that no longer fit are made anew."""
        if not self._places.network(topology):
            return
        for key, pipeline in list(self._blocks.items()):
            if pipeline.is_live or pipeline.why in OF_THE_NETWORK:
                self._arm(key, now)

    def confirmed(self, dpid: Dpid, has: frozenset[FlowEntry], now: float) -> None:
        """The switch has answered that it has these."""
        for key in tuple(self._waiting.get(dpid, ())):
            pipeline = self._blocks[key]
            if pipeline.entries[dpid] in has:
                self._wait(key, pipeline.waits_for - {dpid})
                if not self._blocks[key].waits_for:
                    self._confirm(key, now)

    def waiting(self, dpid: Dpid) -> frozenset[FlowEntry]:
        """Entries that the switch has not confirmed."""
        return frozenset(self._blocks[key].entries[dpid] for key in self._waiting.get(dpid, ()))

    def waited_for(self) -> frozenset[Dpid]:
        """Switches that have not confirmed all."""
        return frozenset(self._waiting)

    def switch_refused(self, dpid: Dpid, refused: frozenset[FlowEntry], what: str) -> None:
        """The switch does not take these entries, which it has not confirmed: what they belong to is not mirrored."""
        for key in tuple(self._waiting.get(dpid, ())):
            if self._blocks[key].entries[dpid] in refused:
                self._refuse(key, Refused(Why.SWITCH, what))

    def switch_anew(self, dpid: Dpid) -> None:
        """The switch has connected, perhaps without what it had: it confirms once more."""
        for key, pipeline in list(self._blocks.items()):
            if dpid in pipeline.entries:
                self._blocks[key] = replace(pipeline, state=State.ARMING)
                self._wait(key, pipeline.waits_for | {dpid})

    # Inside.

    def _arm(self, key: Key, now: float) -> None:
        """Finds the tree of a pipeline whose hops are all known, and puts its entries where they belong."""
        pipeline = self._blocks[key]
        try:
            tree, trunk = self._places.tree(pipeline)
            self._check_agents(trunk)
        except Refused as error:
            if pipeline.why is not error.why:
                self._refuse(key, error)
            else:
                self._blocks[key] = replace(pipeline, what=error.what)
            return
        wanted = entries(tree, trunk, number(pipeline))
        lead = pipeline.replicas - len(trunk) + 1
        if wanted == pipeline.entries and lead == pipeline.lead:
            self._blocks[key] = replace(pipeline, tree=tree)
            return
        self._withdraw(pipeline, keep=wanted)
        fresh = {dpid for dpid, entry in wanted.items() if pipeline.entries.get(dpid) != entry}
        for dpid in fresh:
            self._entries.setdefault(dpid, set()).add(wanted[dpid])
            self._changes.add(dpid, wanted[dpid])
        made = replace(
            pipeline, state=State.ARMING, why=None, what="", tree=tree, entries=MappingProxyType(wanted), lead=lead,
            complete_s=now if pipeline.state is State.REFUSED and pipeline.armed_s is None else pipeline.complete_s,
        )  # fmt: skip
        self._blocks[key] = made
        if not pipeline.is_live or lead != pipeline.lead:
            self._touch(pipeline)
            self._touch(made)
        self._wait(key, (pipeline.waits_for & wanted.keys()) | fresh)
        if not self._blocks[key].waits_for:
            self._confirm(key, now)

    def _check_agents(self, trunk: Collection[Connection]) -> None:
        lacking = [hop.destination for hop in trunk if hop.destination not in self._served]
        if lacking:
            hosts = f"host{'s' if len(lacking) > 1 else ''} {', '.join(lacking)}"
            raise Refused(Why.NO_AGENT, f"no agent on {hosts}: start `trunkline mirror run` there")

    def _wait(self, key: Key, waits_for: frozenset[Dpid] | set[Dpid]) -> None:
        """Only when these switches have confirmed is it armed."""
        pipeline = self._blocks[key]
        for dpid in pipeline.waits_for - waits_for:
            self._waiting[dpid].discard(key)
            if not self._waiting[dpid]:
                del self._waiting[dpid]
        for dpid in waits_for:
            self._waiting.setdefault(dpid, set()).add(key)
        self._blocks[key] = replace(pipeline, waits_for=frozenset(waits_for))

    def _confirm(self, key: Key, now: float) -> None:
        pipeline = self._blocks[key]
        if pipeline.armed_s is None and pipeline.complete_s is not None:
            self.armed += 1
            self.arm_times.add(now - pipeline.complete_s)
        self._blocks[key] = replace(
            pipeline, state=State.ARMED, armed_s=now if pipeline.armed_s is None else pipeline.armed_s
        )
        self._settled.append(self._blocks[key])

    def _refuse(self, key: Key, why: Refused) -> None:
        self.refused[why.why] += 1
        pipeline = self._blocks[key]
        self._withdraw(pipeline)
        self._wait(key, frozenset())
        self._blocks[key] = replace(
            self._blocks[key], state=State.REFUSED, why=why.why, what=why.what, tree=None,
            entries=MappingProxyType({}),
        )  # fmt: skip
        self._settled.append(self._blocks[key])

    def _supersede(self, key: Key) -> None:
        self._remove(key)
        self.superseded += 1

    def _remove(self, key: Key) -> None:
        pipeline = self._blocks[key]
        self._withdraw(pipeline, told=self._ended)
        self._wait(key, frozenset())
        del self._blocks[key]
        for connection in pipeline.hops.values():
            if self._of_connection.get(connection) == key:
                del self._of_connection[connection]
        self._unlist(key, pipeline)
        self._settled.append(pipeline)

    def _unlist(self, key: Key, pipeline: Pipeline) -> None:
        """It has no place at its hosts any more, and waits for none."""
        for address in _hosts_of(pipeline):
            _drop(self._roomless, address, key)
            if _drop(self._of_host, address, key) and address in self._roomless:
                self._freed.add(address)

    def _withdraw(
        self,
        pipeline: Pipeline,
        keep: Mapping[Dpid, FlowEntry] = MappingProxyType({}),
        told: set[str] | None = None,
    ) -> None:
        """Takes its entries away, other than those to `keep`; agents at addresses in `told` are to hear of it."""
        for dpid, entry in pipeline.entries.items():
            if keep.get(dpid) != entry:
                of_switch = self._entries[dpid]
                of_switch.discard(entry)
                if not of_switch:
                    del self._entries[dpid]
                self._changes.remove(dpid, entry)
        if pipeline.is_live and not keep:
            (self._touched if told is None else told).update(hop.destination for hop in pipeline.mirrored.values())

    def _touch(self, pipeline: Pipeline, after: int = 0) -> None:
        """Agents at its replicas, from the one after this position on, are told something else."""
        self._touched.update(hop.destination for position, hop in pipeline.mirrored.items() if position > after)


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


def _addresses(connection: Connection) -> tuple[str, ...]:
    return (connection.source, connection.destination)


def _hosts_of(pipeline: Pipeline) -> tuple[str, ...]:
    return tuple(dict.fromkeys(address for hop in pipeline.hops.values() for address in _addresses(hop)))


def _drop(some: dict[str, dict[Key, None]], address: str, key: Key) -> bool:
    """Takes it from those of the address; whether it was one."""
    of_address = some.get(address, {})
    if key not in of_address:
        return False
    del of_address[key]
    if not of_address:
        del some[address]
    return True

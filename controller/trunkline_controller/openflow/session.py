"""A connected switch: what it has, what it should have, and the way from one to the other, confirmed by barriers."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import heapq
import logging
import struct
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from ..flows.desired import is_ours
from ..flows.difference import (
    AddFlow,
    AddGroup,
    Change,
    DeleteFlow,
    DeleteGroup,
    Key,
    ModifyGroup,
    difference,
)
from ..flows.entry import FlowEntry, Owner, SelectGroup, Table, Tables, cookie
from ..net.topology import Dpid, Port, PortNo
from . import messages, replies
from .connection import Connection, Gone, OpenFlowError
from .leases import Lease

log = logging.getLogger(__name__)

T = TypeVar("T")

BATCH = 512  # changes between two barriers
RETRY_S = 30.0  # what a switch refused is tried again after this, or when it has been given something else to have
MANAGED = tuple(owner for owner in Owner if owner is not Owner.LEASE)  # that comes and goes by itself
OWNER_MASK = 0xFFFFFFFF << 32
MAX_LEASES = 16  # of one switch, the most senior ones
MAX_PORTS = 2048  # of one switch
SLICE = 256  # entries of a reply that are read at a time
# What is kept of one of each takes up in memory; estimates on the high side.
ENTRY_BYTES, PORT_BYTES, QUEUE_BYTES = 1024, 2048, 1024

_FLOW_MOD_FAILED, _TABLE_FULL = 5, 1
_GROUP_MOD_FAILED, _GROUP_EXISTS, _OUT_OF_GROUPS, _UNKNOWN_GROUP = 6, 0, 3, 8


@dataclass(frozen=True)
class Refusal:
    """A change that the switch would not make. `full`: for want of room."""

    change: Change
    error: OpenFlowError

    @property
    def full(self) -> bool:
        return (self.error.kind, self.error.code) in (
            (_FLOW_MOD_FAILED, _TABLE_FULL),
            (_GROUP_MOD_FAILED, _OUT_OF_GROUPS),
        )


@dataclass
class Session:
    """`want` says what the switch should have; `run` keeps it so while the connection lasts."""

    connection: Connection
    name: str = ""
    ports: dict[PortNo, Port] = field(default_factory=dict)
    role: int = messages.ROLE_NOCHANGE  # as the switch last said, and the generation of roles
    generation: int = 0
    leases: tuple[Lease, ...] = ()
    ports_refused: int = 0
    _port_news: set[PortNo] = field(default_factory=set)  # that changed while all were asked for
    _described: bool = False
    managed: bool = False  # this controller is its master and has read what it has
    flows: set[FlowEntry] = field(default_factory=set)  # of ours, and there
    groups: dict[int, SelectGroup] = field(default_factory=dict)
    foreign: frozenset[Key] = frozenset()
    counters: dict[FlowEntry, tuple[int, int]] = field(default_factory=dict)  # packets and bytes
    refusals: dict[object, Refusal] = field(default_factory=dict)  # by what was refused
    changes_sent: int = 0
    _wanted: Tables | None = None
    _keep: frozenset[Table] = frozenset()
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    _pending: dict[int, tuple[Change, FlowEntry | None]] = field(default_factory=dict)
    _retry_at: float = 0.0
    _term: int = 0
    _kept: int = 0  # bytes, counted for what was read
    _queues: int = 0  # whose counters were read
    in_step: bool = False  # has all that is wanted, as far as it does not refuse
    answered: Callable[[], None] = lambda: None  # called after each answer to changes

    @property
    def dpid(self) -> Dpid:
        return self.connection.dpid

    @property
    def version(self) -> int:
        return self.connection.version

    async def describe(self) -> None:
        """Finds out its name and ports."""
        body = await self.connection.request(messages.multipart(self.version, messages.MP_DESC))
        described = replies.name_text(body[800:1056])
        self._port_news = set()
        found = await self.connection.request(messages.port_desc_request(self.version))
        for port in replies.ports(self.version, found):
            if port.number not in self._port_news:  # what it said of itself since is newer
                self.port_changed(port)
        self._described, self._port_news = True, set()
        self.name = described if described not in ("", "None") else f"{self.dpid:016x}"

    def port_changed(self, port: Port) -> bool:
        """Whether it is reckoned with: not where the switch says to have more of them than any has."""
        self._port_said(port.number)
        if port.number not in self.ports:
            if len(self.ports) >= MAX_PORTS:
                self.ports_refused += 1
                return False
            self.connection.memory.keep(PORT_BYTES)
        self.ports[port.number] = port
        return True

    def port_removed(self, number: PortNo) -> bool:
        """Whether it was there."""
        self._port_said(number)
        if self.ports.pop(number, None) is None:
            return False
        self.connection.memory.keep(-PORT_BYTES)
        return True

    def _port_said(self, number: PortNo) -> None:
        if not self._described and len(self._port_news) < MAX_PORTS:
            self._port_news.add(number)

    async def ask_role(self, role: int, generation: int = 0) -> None:
        """Raises OpenFlowError where the generation is stale, ValueError where the answer is none."""
        answer = await self.connection.request(messages.role(self.version, role, generation))
        if len(answer) < 24:
            raise ValueError(f"a role reply of {len(answer)} bytes")
        self.role, told = struct.unpack_from("!I4xQ", answer, 8)
        self.generation = 0 if told == messages.NO_GENERATION else told

    async def read_leases(self) -> None:
        request = messages.flows_request(self.version, cookie(Owner.LEASE), OWNER_MASK, Table.ADMIT)
        body = await self.connection.request(request)
        entries = [read.entry for read in replies.flows(self.version, body) if read.entry is not None]
        found = (lease for entry in entries if (lease := Lease.of(entry)) is not None)
        self.leases = tuple(heapq.nsmallest(MAX_LEASES, found))

    async def read(self) -> None:
        """Finds out what of ours it has, and what of others stands where ours might. Where it is given changes
        meanwhile, what was found is no longer so, and nothing is made of it.
        """
        sent = self.changes_sent
        flows: set[FlowEntry] = set()
        foreign: set[Key] = set()
        groups: dict[int, SelectGroup] = {}
        with self.connection.memory.holding() as held:
            try:
                async for read in self._read_flows(messages.flows_request(self.version)):
                    # One of ours that was made to do something else is put right: it counts as not there.
                    if not read.ours:
                        if read.key is not None:
                            foreign.add(read.key)
                    elif read.entry is not None and read.cookie >> 32 & 0xFFFF in MANAGED:
                        flows.add(read.entry)
                    held.set((len(flows) + len(foreign)) * ENTRY_BYTES)
                await self._read_groups(groups)
                if self.changes_sent == sent and self.connection.is_open:
                    self.flows, self.groups, self.foreign = flows, groups, frozenset(foreign)
            except BaseException:
                # The exception may outlive this, and with it what stands here.
                for read_so_far in (flows, foreign, groups):
                    read_so_far.clear()
                raise
        if self.flows is flows:
            kept = (len(flows) + len(foreign) + len(groups)) * ENTRY_BYTES
            more, self._kept = kept - self._kept, kept
            self.connection.memory.keep(more)
            self._news.set()

    async def read_groups(self) -> dict[int, SelectGroup]:
        """Ours."""
        groups: dict[int, SelectGroup] = {}
        await self._read_groups(groups)
        return groups

    async def _read_groups(self, groups: dict[int, SelectGroup]) -> None:
        with self.connection.memory.holding() as held:
            async for group in self._read(messages.group_desc_request(self.version), replies.groups):
                if is_ours(group.number):
                    groups[group.number] = group
                    held.set(len(groups) * ENTRY_BYTES)

    def _read_flows(self, request: bytes) -> AsyncIterator[replies.ReadFlow]:
        return self._read(request, replies.flows)

    async def _read(self, request: bytes, parse: Callable[[int, bytes], Iterator[T]]) -> AsyncIterator[T]:
        """What a long reply says, a slice at a time: other switches are served in between."""
        number = 0
        async with contextlib.aclosing(self.connection.long_reply(request)) as bodies:
            async for body in bodies:
                for one in parse(self.version, body):
                    number += 1
                    if number % SLICE == 0:
                        await asyncio.sleep(0)
                        if not self.connection.is_open:
                            raise Gone("the connection ended while its reply was read")
                    yield one

    async def counted(self, table: Table | None = None) -> None:
        """Reads the counters of its entries, of one table or all."""
        found: dict[FlowEntry, tuple[int, int]] = {}
        async for read in self._read_flows(messages.flows_request(self.version, table=table)):
            if read.entry is not None and read.entry in self.flows:
                found[read.entry] = read.packets, read.bytes
        kept = {} if table is None else {e: c for e, c in self.counters.items() if e.table is not table}
        self.counters = kept | {entry: counts for entry, counts in found.items() if entry in self.flows}

    async def count(self) -> int:
        """How many entries of ours it says to have."""
        total = 0
        for owner in MANAGED:
            request = messages.flows_request(self.version, cookie(owner), OWNER_MASK, kind=messages.MP_AGGREGATE)
            total += replies.flow_count(self.version, await self.connection.request(request))
        return total

    async def port_counts(self) -> dict[PortNo, replies.PortCounts]:
        body = await self.connection.request(messages.port_stats_request(self.version))
        return {number: c for number, c in replies.port_counts(self.version, body).items() if number in self.ports}

    async def queue_counts(self, port: PortNo | None = None) -> dict[tuple[PortNo, int], replies.QueueCounts]:
        request = messages.queue_stats_request(self.version, messages.ANY if port is None else port)
        counted = replies.queue_counts(self.version, await self.connection.request(request))
        found = {key: counts for key, counts in counted.items() if key[0] in self.ports}
        if port is None:
            more, self._queues = len(found) - self._queues, len(found)
            self.connection.memory.keep(more * QUEUE_BYTES)
        return found

    def want(self, tables: Tables, keep: frozenset[Table]) -> None:
        """In tables of `keep` nothing that is there is changed or removed."""
        if self._wanted is not None and tables.flows != self._wanted.flows:
            self._retry_at = 0.0
        self._wanted, self._keep = tables, keep
        self.in_step = False
        self._news.set()

    def wants(self) -> tuple[Tables | None, frozenset[Table]]:
        return self._wanted, self._keep

    def amend(self, added: frozenset[FlowEntry], removed: frozenset[FlowEntry]) -> None:
        """It should have these more, and these no longer: at once, without looking for what else differs."""
        if self._wanted is None:
            return
        # A switch may have many thousands: they are gone through no more often than need be.
        flows = self._wanted.flows - removed if removed else self._wanted.flows
        self._wanted = Tables(flows | added if added else flows, self._wanted.groups)
        for entry in added:
            self.refusals.pop(entry, None)
        there = removed & self.flows
        changes = difference(Tables(added), Tables(there), self.foreign)
        xids, done = self._send(changes, {entry.key: entry for entry in there})
        done.add_done_callback(functools.partial(self._amended, changes, xids))

    def _amended(self, changes: list[Change], xids: list[int], done: asyncio.Future[None]) -> None:
        self._no_longer_pending(xids)
        if done.exception() is None:
            self._made(changes)

    def confirmed(self, entries: frozenset[FlowEntry]) -> frozenset[FlowEntry]:
        """Those of them that it has, by its own answers."""
        pending = {change.entry for change, _ in self._pending.values() if isinstance(change, AddFlow)}
        return frozenset(entry for entry in entries if entry in self.flows and entry not in pending)

    def refused(self, entries: frozenset[FlowEntry]) -> dict[FlowEntry, str]:
        """Those of them that it does not take, and why."""
        return {entry: str(self.refusals[entry].error) for entry in entries if entry in self.refusals}

    def leaving(self) -> frozenset[FlowEntry]:
        """Those that it was told to remove or replace, and has not answered."""
        pending = self._pending.values()
        removed = {change.entry for change, _ in pending if isinstance(change, DeleteFlow)}
        return frozenset(removed | {old for _, old in pending if old is not None})

    def failed(self, xid: int, error: OpenFlowError) -> None:
        """A change was refused; the barrier after it has not been answered yet."""
        pending = self._pending.pop(xid, None)
        if pending is None:
            return
        change, old = pending
        self._undo(change, old, (error.kind, error.code))
        subject: object = change.entry if isinstance(change, AddFlow | DeleteFlow) else change
        self.refusals[subject] = Refusal(change, error)

    def begin(self) -> int:
        """This controller is its master from now on; returns which of its terms that is."""
        self.managed = True
        self._term += 1
        self.refusals.clear()
        return self._term

    def end(self) -> None:
        """Another controller is, or the connection ended: nothing more is changed."""
        self.managed, self.in_step, self._wanted = False, False, None
        self._news.set()

    def gone(self) -> None:
        """The connection ended: what was known of the switch is not kept, whoever still looks at it."""
        self.end()
        self.ports, self.flows, self.groups, self.foreign, self.counters = {}, set(), {}, frozenset(), {}
        self.refusals.clear()

    def is_in(self, term: int) -> bool:
        return self.managed and self._term == term and self.connection.is_open

    async def run(self, term: int) -> None:
        """Until the term ends, or the connection."""
        loop = asyncio.get_running_loop()
        while self.is_in(term):
            try:
                await asyncio.wait_for(self._news.wait(), RETRY_S if self.refusals else None)
            except TimeoutError:
                self._retry_at = 0.0
            if not self.is_in(term):
                return
            self._news.clear()
            while changes := self._changes(loop.time()):
                self.in_step = deleted = False
                try:
                    for start in range(0, len(changes), BATCH):
                        batch = changes[start : start + BATCH]
                        await self._make(batch)
                        deleted = deleted or any(isinstance(change, DeleteFlow | DeleteGroup) for change in batch)
                        if self._news.is_set():
                            break  # something else is wanted
                except Gone:
                    return
                if not self.is_in(term):
                    return
                self._news.clear()
                if deleted and any(refusal.full for refusal in self.refusals.values()):
                    self.refusals.clear()  # there is room now
            self.in_step = self._wanted is not None

    def _changes(self, now: float) -> list[Change]:
        if self._wanted is None:
            return []
        if now >= self._retry_at:
            self.refusals.clear()
            self._retry_at = now + RETRY_S
        changes = difference(self._wanted, Tables(frozenset(self.flows), self.groups), self.foreign, self._keep)
        if self.refusals:
            refused = self.refusals
            changes = [c for c in changes if (c.entry if isinstance(c, AddFlow | DeleteFlow) else c) not in refused]
        return changes

    async def _make(self, changes: list[Change]) -> None:
        present = {entry.key: entry for entry in self.flows} if any(isinstance(c, AddFlow) for c in changes) else {}
        xids, done = self._send(changes, present)
        try:
            await done
        finally:
            self._no_longer_pending(xids)
        self._made(changes)

    def _send(self, changes: list[Change], present: dict[Key, FlowEntry]) -> tuple[list[int], asyncio.Future[None]]:
        """`present`: what is there, as far as these changes replace it."""
        xids, done = self.connection.send_barred([messages.of_change(self.version, change) for change in changes])
        for xid, change in zip(xids, changes, strict=True):
            old = present.get(change.entry.key) if isinstance(change, AddFlow) else None
            self._pending[xid] = change, old
            self._do(change, old)
        self.changes_sent += len(changes)
        return xids, done

    def _no_longer_pending(self, xids: list[int]) -> None:
        for xid in xids:
            self._pending.pop(xid, None)

    def _made(self, changes: list[Change]) -> None:
        """The switch has answered these."""
        for change in changes:
            # What was refused because the group was there, or was not, is put right by its counterpart.
            if isinstance(change, AddGroup | ModifyGroup) and change not in self.refusals:
                other = ModifyGroup(change.group) if isinstance(change, AddGroup) else AddGroup(change.group)
                if other in self.refusals:
                    self.refusals.clear()
        self.answered()

    def _do(self, change: Change, old: FlowEntry | None) -> None:
        match change:
            case AddFlow(entry):
                if old is not None:
                    self.flows.discard(old)
                self.flows.add(entry)
            case DeleteFlow(entry):
                self.flows.discard(entry)
                self.counters.pop(entry, None)
            case AddGroup(group) | ModifyGroup(group):
                self.groups[group.number] = group
            case DeleteGroup(number):
                self.groups.pop(number, None)

    def _undo(self, change: Change, old: FlowEntry | None, why: tuple[int, int]) -> None:
        match change:
            case AddGroup(group) if why == (_GROUP_MOD_FAILED, _GROUP_EXISTS):
                self.groups[group.number] = SelectGroup(group.number, ())  # it is modified next
            case ModifyGroup(group) if why == (_GROUP_MOD_FAILED, _UNKNOWN_GROUP):
                self.groups.pop(group.number, None)  # it is added next
            case AddFlow(entry):
                self.flows.discard(entry)
                if old is not None:
                    self.flows.add(old)
            case AddGroup(group):
                self.groups.pop(group.number, None)
            case ModifyGroup(group):
                self.groups[group.number] = SelectGroup(group.number, ())
            case DeleteFlow() | DeleteGroup():
                pass  # it is most likely not there, which is what was wanted

    def again(self) -> None:
        """What it refused is asked of it again now."""
        self._retry_at = 0.0
        self._news.set()

    async def release(self, lease: Lease) -> None:
        """Lets go of the switch in peace: another controller may take it at once. Its flows stay."""
        with contextlib.suppress(OSError, TimeoutError):
            self.connection.send(messages.delete_flow(self.version, lease.entry()))
            await self.connection.barrier()

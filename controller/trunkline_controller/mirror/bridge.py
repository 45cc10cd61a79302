"""A Linux bridge whose agent mirrors: what it should have, what it has by its own word, and what it is told of that.

An answer is the difference to one that the agent has taken, or names all anew; each has a version, which the agent says
back when its kernel has what it names. No clock and no I/O.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ..flows.entry import FlowEntry, Match, Owner, SetField, Table, cookie
from ..net.topology import Dpid, End, Mac, Port, PortNo
from .bridge_entries import Copies, Segments, admitted, copies

MAX_CHANGES = 1024  # that are told at once
MAX_TOLD = 8  # answers that may be taken yet


@dataclass(frozen=True)
class Told:
    """What an agent has that took an answer. `purged`: and nothing else, of before."""

    flows: frozenset[FlowEntry] = frozenset()
    purged: bool = False


@dataclass(frozen=True)
class Update:
    """An answer. Without `base` it names all anew. `purge`: all are named, others are to be removed. `links`: ports
    toward other mirroring switches, all of them.
    """

    version: int
    base: int | None
    made: tuple[Copies, ...] = ()
    removed: tuple[Segments, ...] = ()
    purge: bool = False
    links: frozenset[PortNo] = frozenset()


@dataclass(frozen=True)
class BridgePoll:
    """What a bridge's agent says. `seen` is the version that its kernel has, -1 for none. `ports` and `heard`, LLDP by
    port, are None where nothing has changed. `copies_to` are replicas' addresses that entries of before lead to.
    """

    name: str
    run: str
    dpid: Dpid
    seen: int = -1
    ports: tuple[Port, ...] | None = None
    heard: Mapping[PortNo, bytes] | None = None
    hosts: tuple[tuple[PortNo, Mac, str | None], ...] = ()
    copies_to: frozenset[str] = frozenset()
    failed: Mapping[Segments, str] = field(default_factory=lambda: MappingProxyType({}))
    leaving: bool = False


@dataclass(frozen=True)
class BridgeTold:
    """The answer. `lldp` is to be sent again and again, by port; `send` once, by these ports. `announce`: it is to say
    all again, and nothing else counts.
    """

    lease_s: float
    update: Update
    lldp: Mapping[PortNo, bytes] | None = None
    send: tuple[tuple[tuple[PortNo, ...], bytes], ...] = ()
    announce: bool = False


@dataclass(frozen=True)
class BridgeState:
    """A bridge as operators see it, and how long ago its agent polled."""

    name: str
    dpid: Dpid
    ports: int
    links: int
    entries: int
    polled_ago_s: float


@dataclass
class Bridge:
    """Of one run of its agent. `news` is called when it should have something else. `heard` are switches at the other
    ends of its cables, by port. `had` are replicas' addresses that it copied to when the run began. It is a
    `mirrors.Switch`.
    """

    dpid: Dpid
    name: str
    run: str
    news: Callable[[], None] = lambda: None
    heard: Mapping[PortNo, End] = field(default_factory=dict)
    had: frozenset[str] = frozenset()
    flows: set[FlowEntry] = field(default_factory=set)  # that it should have
    is_planned: bool = False  # and that is all there is to have
    _version: int = 0
    _told: dict[int, Told] = field(default_factory=dict)
    _has: frozenset[FlowEntry] = frozenset()
    _failed: dict[FlowEntry, str] = field(default_factory=dict)

    # Of `mirrors.Switch`.

    def amend(self, added: frozenset[FlowEntry], removed: frozenset[FlowEntry]) -> None:
        """It should have these more, and these no longer."""
        self._should_have((self.flows - removed) | added)

    def confirmed(self, entries: frozenset[FlowEntry]) -> frozenset[FlowEntry]:
        """Those of them that it has, by its own word. What has it copy nothing it has when it has the rest."""
        return (entries & self._has & self.flows) - self._failed.keys()

    def refused(self, entries: frozenset[FlowEntry]) -> Mapping[FlowEntry, str]:
        """Those of them that it can't make, and why."""
        return {entry: why for entry, why in self._failed.items() if entry in entries}

    def leaving(self) -> frozenset[FlowEntry]:
        """Those that it may have still, and should not."""
        may_have = self._has.union(*(told.flows for told in self._told.values()))
        return (may_have - self.flows) | frozenset(map(_to, self.had))

    # What is planned, and what its agent says.

    def want(self, entries: frozenset[FlowEntry]) -> None:
        """All that it should have."""
        was_planned, self.is_planned = self.is_planned, True
        self._should_have(set(entries))
        if not was_planned:
            self.news()

    def _should_have(self, flows: set[FlowEntry]) -> None:
        if flows != self.flows:
            self.flows = flows
            self.news()

    def said(self, seen: int, failed: Mapping[Segments, str]) -> bool:
        """Its kernel has what the answer of this version named, but for what failed. Whether that is news."""
        before = self._has, self._failed
        if (told := self._told.get(seen)) is not None:
            self._has = told.flows
            self.had = frozenset() if told.purged else self.had
            self._told = {version: other for version, other in self._told.items() if version >= seen}
        made = ((entry, copies(entry)) for entry in self._has) if failed else ()
        self._failed = {entry: failed[made.of] for entry, made in made if made is not None and made.of in failed}
        return before != (self._has, self._failed)

    def has_news(self, seen: int, hold: bool) -> bool:
        """Whether it should be told something else than that answer. `hold`: what it has of before is to stay."""
        return self._told.get(seen) != Told(frozenset(self.flows), self._may_purge(hold))

    def _may_purge(self, hold: bool) -> bool:
        return self.is_planned and not hold

    def tell(self, seen: int, hold: bool) -> Update:
        """The answer to one who has taken that version."""
        wanted, base = frozenset(self.flows), self._told.get(seen)
        had = base or Told()
        missing, over = list(wanted - had.flows), list(had.flows - wanted)
        made, removed = missing[:MAX_CHANGES], over[: max(0, MAX_CHANGES - len(missing))]
        flows = (had.flows - frozenset(removed)) | frozenset(made)
        told = Told(flows, had.purged or (self._may_purge(hold) and flows == wanted))
        version = seen
        if base is None or told != base:
            self._version = version = max(self._version, seen) + 1
            self._told[version] = told
            for oldest in sorted(self._told)[:-MAX_TOLD]:
                del self._told[oldest]
        # One whose copies have changed is made anew, which takes away what it was before.
        stay = {entry.key for entry in flows if copies(entry) is not None} if removed else set()
        gone = (copies(entry) for entry in removed if entry.key not in stay)
        return Update(
            version,
            None if base is None else seen,
            tuple(found for found in map(copies, made) if found is not None),
            tuple(found.of for found in gone if found is not None),
            told.purged and not had.purged,
            admitted(wanted),
        )

    @property
    def entries(self) -> int:
        """How many segments it copies, by its own word."""
        return sum(1 for entry in self._has if copies(entry) is not None)

    @property
    def in_step(self) -> bool:
        """It has all that it should, as far as it can."""
        return self.is_planned and self._has == self.flows


def _to(address: str) -> FlowEntry:
    """Stands for whatever a bridge has that copies to a replica."""
    field = "ipv6_dst" if ":" in address else "ipv4_dst"
    return FlowEntry(Table.FORWARD, 0, Match(), (SetField(field, address),), None, cookie(Owner.MIRROR))

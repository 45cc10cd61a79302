"""Agents at replicas' hosts: which are there, and what each is told of pipelines.

    unknown --(it polls)--> there --(it polls again in time)--> there
       ^                      |
       |                      +--(it says that it leaves)--> left: this run of it is there no more
       +--(silent for a lease)+

What an agent is told has a version; it has another one whenever what it should be told may be another. No clock and no
I/O: time comes in with what happens. Memory is bounded by the constants.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from .model import Head, MirroredFlow, Pipeline

MAX_AGENTS = 1024
MAX_ADDRESSES = 64  # of one agent
ADDRESS_TAKEN = "address_taken"
MAX_LEFT = 4 * MAX_AGENTS  # runs of agents that are remembered to have left, the latest


class TooMany(ValueError):
    """So many agents are there that no other is taken; nothing has changed."""


class NotTaken(ValueError):
    """A poll that is at odds with what another one said; nothing has changed. `why` says in a word how."""

    def __init__(self, why: str, what: str, remedy: str) -> None:
        super().__init__(f"{what}; {remedy}")
        self.why = why
        self.what = what
        self.remedy = remedy


def has_left(name: str) -> NotTaken:
    """Of a poll that comes after its run said that it leaves: one of the two was overtaken on its way."""
    return NotTaken("left", f"this run of agent {name} has left", "start the agent anew if it is to go on")


@dataclass(frozen=True)
class Poll:
    """What an agent says with a poll. `run` tells its runs apart; `seen` is the version that it has, -1 for none;
    `heads` are of connections that it leads; `failed` says why it can't take its part in some pipelines.
    """

    name: str
    run: str
    addresses: frozenset[str]
    seen: int = -1
    heads: tuple[Head, ...] = ()
    failed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    leaving: bool = False


@dataclass(frozen=True)
class Agent:
    """One that is there. Times are of the caller's clock, in seconds."""

    name: str
    run: str
    addresses: frozenset[str]
    polled_s: float
    polls: int  # that may wait; one knows by this that another came after it
    version: int


@dataclass(frozen=True)
class Told:
    """The answer to a poll: the whole list. `stopped`, of an agent that leaves: connected switches have confirmed that
    they send its host no copies any more.
    """

    version: int
    lease_s: float
    flows: tuple[MirroredFlow, ...] = ()
    stopped: bool | None = None


@dataclass(frozen=True)
class AgentState:
    """An agent as operators see it: the pipelines that it has a part in, and how long ago it polled."""

    name: str
    addresses: tuple[str, ...]
    pipelines: int
    polled_ago_s: float


class Agents:
    """All agents. `lease_s`: one that has not polled for so long is taken for gone."""

    def __init__(self, lease_s: float) -> None:
        self.lease_s = lease_s
        self._agents: dict[str, Agent] = {}
        self._at: dict[str, str] = {}  # agents' names by address
        self._came: set[str] = set()
        self._gone: set[str] = set()
        self._left: dict[tuple[str, str], None] = {}  # names and runs, the latest last
        self._version = 0

    def all(self) -> tuple[Agent, ...]:
        """Any thread may ask."""
        return tuple(self._agents.copy().values())

    def get(self, name: str) -> Agent | None:
        return self._agents.get(name)

    def polled(self, poll: Poll, now: float, may_wait: bool = True) -> Agent:
        """The agent is there. Its poll that may wait, or one of another run, takes the place of an earlier one that
        waits. Raises TooMany or NotTaken.
        """
        if (poll.name, poll.run) in self._left:
            raise has_left(poll.name)
        self._check_claims(poll)
        known = self._agents.get(poll.name)
        if known is None and len(self._agents) >= MAX_AGENTS:
            raise TooMany(f"{MAX_AGENTS} agents are there already")
        if known is None or known.addresses != poll.addresses:
            self._move(poll.name, known.addresses if known else frozenset(), poll.addresses)
            known = replace(known, version=self._next()) if known else None
        polls = known.polls if known else 0
        if may_wait or known is None or known.run != poll.run:
            polls += 1
        version = known.version if known else self._next()
        made = Agent(poll.name, poll.run, poll.addresses, now, polls, version)
        self._agents[poll.name] = made
        return made

    def _check_claims(self, poll: Poll) -> None:
        """Who claims an address first has it, so that no other agent is told of the connections there."""
        for address in sorted(poll.addresses):
            if (holder := self._at.get(address, poll.name)) != poll.name:
                raise NotTaken(
                    ADDRESS_TAKEN,
                    f"{address} is taken: agent {holder} is there",
                    f"end one of the two, or wait until agent {holder} has been silent for {self.lease_s:g} s",
                )

    def leave(self, name: str, run: str) -> bool:
        """This run of the agent is there no more, whatever of it still comes; whether it was. Raises NotTaken where
        another run of it is there.
        """
        self._left.pop((name, run), None)
        self._left[name, run] = None
        if len(self._left) > MAX_LEFT:
            del self._left[next(iter(self._left))]
        known = self._agents.get(name)
        if known is not None and known.run != run:
            raise NotTaken(
                "another_run",
                f"another run of agent {name} is there, and has copies sent to its host",
                "leave them to it; give agents of two hosts two names",
            )
        return self._remove(name)

    def has_left(self, name: str, run: str) -> bool:
        """As far back as that is remembered."""
        return (name, run) in self._left

    def _remove(self, name: str) -> bool:
        known = self._agents.pop(name, None)
        if known is not None:
            self._move(name, known.addresses, frozenset())
        return known is not None

    def sweep(self, now: float) -> tuple[str, ...]:
        """Removes those whose lease is over; their names."""
        over = tuple(agent.name for agent in self._agents.values() if agent.polled_s + self.lease_s <= now)
        for name in over:
            self._remove(name)
        return over

    def clear(self) -> tuple[str, ...]:
        """Another controller is master, and has agents of its own; the names of those that were here."""
        names = tuple(self._agents)
        self._agents.clear()
        self._at.clear()
        self._came.clear()
        self._gone.clear()
        return names

    def take_moved(self) -> tuple[frozenset[str], frozenset[str]]:
        """Addresses at which there is an agent now, and at which there is none any more, since it was last called."""
        moved = frozenset(self._came), frozenset(self._gone)
        self._came.clear()
        self._gone.clear()
        return moved

    def touch(self, addresses: Iterable[str]) -> frozenset[str]:
        """Agents at these addresses are told something else now; their names."""
        names = frozenset(self._at[address] for address in addresses if address in self._at)
        for name in names:
            self._agents[name] = replace(self._agents[name], version=self._next())
        return names

    def _next(self) -> int:
        self._version += 1
        return self._version

    def _move(self, name: str, before: frozenset[str], after: frozenset[str]) -> None:
        for address in before - after:
            del self._at[address]
            self._gone.add(address)
            self._came.discard(address)
        for address in after - before:
            self._at[address] = name
            self._came.add(address)
            self._gone.discard(address)


def flows_of(pipelines: Iterable[Pipeline], addresses: Collection[str]) -> tuple[MirroredFlow, ...]:
    """What an agent with these addresses is told: all live pipelines in which one of them is a replica's."""
    return tuple(
        flow
        for pipeline in pipelines
        if pipeline.is_live
        for flow in pipeline.flows
        if flow.receive.destination in addresses
    )

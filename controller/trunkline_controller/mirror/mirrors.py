"""Pipelines between those who announce them, the switches, and the agents at replicas' hosts: what is announced goes to
switches and agents at once, and who waits is told when all switches have confirmed.

All of it runs on the loop's thread, but for `all`, `agents` and `counts`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from ..control import NotNow
from ..flows.entry import COOKIE, COOKIE_MASK, FlowEntry, Owner, SetField, cookie
from ..net.topology import Dpid, Topology
from .agents import ADDRESS_TAKEN, MAX_AGENTS, Agents, AgentState, NotTaken, Poll, Told, flows_of, has_left
from .counts import MirrorCounts
from .model import Hop, Pipeline, State
from .pipelines import Pipelines
from .places import number_of
from .settings import MirrorSettings
from .waiting import Waiting

log = logging.getLogger(__name__)

SWEEP_S = 1.0
CLOSED = "closed"  # the reason in a word: the pipeline that was waited for has ended
TELL_AFTER_S = 0.002  # agents are told of what comes together together, and after who waits for a pipeline to be armed
END_AFTER_S = 0.1  # of a pipeline that has ended they need not hear at once, but with what comes next


class Switch(Protocol):
    """A connected switch, as far as mirroring knows it."""

    @property
    def dpid(self) -> Dpid: ...

    name: str
    flows: set[FlowEntry]

    def amend(self, added: frozenset[FlowEntry], removed: frozenset[FlowEntry]) -> None:
        """It should have these entries more, and these no longer."""
        ...

    def confirmed(self, entries: frozenset[FlowEntry]) -> frozenset[FlowEntry]:
        """Those of them that it surely has."""
        ...

    def refused(self, entries: frozenset[FlowEntry]) -> Mapping[FlowEntry, str]:
        """Those of them that it does not take, and why."""
        ...

    def leaving(self) -> frozenset[FlowEntry]:
        """Those that it was told to remove, and has not answered."""
        ...


class Mirrors:
    """`switches()`: those that this controller is master of, by datapath id. Where mirroring is off it does nothing."""

    def __init__(self, settings: MirrorSettings, switches: Callable[[], Mapping[Dpid, Switch]]) -> None:
        self.settings = settings
        self._switches = switches
        self._pipelines = Pipelines(settings.limits)
        self._agents = Agents(settings.agent_lease_s)
        self._waiting = Waiting()  # by pipeline's id
        self._polls = Waiting()  # by agent's name
        self._answers = Waiting()  # of switches
        self._disputes: dict[str, str] = {}  # by agent: what the log says already
        self._to_tell: set[str] = set()  # agents
        self._to_end: set[str] = set()  # agents that are told in a while
        self._telling: asyncio.TimerHandle | None = None
        self._ending: asyncio.TimerHandle | None = None
        self._late = 0
        self._is_master = False
        self._held_until = 0.0
        self._held: dict[Dpid, frozenset[FlowEntry]] = {}  # from before this controller was master
        self._sweep_at = 0.0
        self._sought: frozenset[str] = frozenset()

    # What owners of pipelines and operators ask.

    async def announce(self, hop: Hop, wait_s: float) -> Pipeline:
        """Takes a hop, and waits so long for hops that are missing, and then so long for the pipeline to be armed or
        refused. Raises Refused or NotNow.
        """
        self._check()
        begun = time.monotonic()
        try:
            pipeline = self._pipelines.announce(hop, begun)
        finally:
            self._flush()  # a hop that is refused may have ended another pipeline
        if wait_s <= 0:
            return pipeline
        return await self._settled(pipeline.id, begun, wait_s)

    async def _settled(self, identity: str, begun: float, wait_s: float) -> Pipeline:
        while True:
            try:
                pipeline = self._pipelines.get(identity)
            except KeyError:
                what = "the pipeline was closed, or superseded, meanwhile"
                raise NotNow(what, "announce its present hops", why=CLOSED) from None
            if pipeline.settled:
                return pipeline
            # This controller's time begins when it knows all hops; each that is dialled anew begins it anew, but once.
            since = begun if pipeline.complete_s is None else max(begun, pipeline.complete_s)
            left = min(since + wait_s, begun + 2 * wait_s) - time.monotonic()
            if left <= 0:
                self._late += pipeline.complete_s is not None
                return pipeline
            await self._waiting.news(identity, left)

    def close(self, identity: str) -> None:
        """Raises KeyError or NotNow."""
        self._check()
        try:
            self._pipelines.close(identity, time.monotonic())
        except KeyError:
            if not self._let_go(identity):
                raise
        self._flush()

    def _let_go(self, identity: str) -> bool:
        """Of a pipeline that another master knew: takes away what is held of it. Whether there was any."""
        ours = cookie(Owner.MIRROR, number_of(identity))
        switches, found = self._switches(), False
        for dpid, held in self._held.items():
            if ended := frozenset(entry for entry in held if entry.cookie == ours):
                self._held[dpid], found = held - ended, True
                if dpid in switches:
                    switches[dpid].amend(frozenset(), ended - self._pipelines.entries(dpid))
        return found

    def all(self) -> tuple[Pipeline, ...]:
        return self._pipelines.all()

    # What agents ask.

    async def poll(self, poll: Poll, wait_s: float) -> Told:
        """Takes what an agent says, and answers when it should be told something else than it has seen, or after
        `wait_s`, at most half of its lease. Raises TooMany, NotTaken or NotNow.
        """
        self._check()
        begun = time.monotonic()
        if poll.leaving:
            return await self._leave(poll, begun + wait_s)
        is_new = self._agents.get(poll.name) is None
        try:
            polls = self._agents.polled(poll, begun, wait_s > 0).polls
        except NotTaken as error:
            self._disputed(poll.name, error)
            raise
        self._disputes.pop(poll.name, None)
        if is_new:
            log.info("mirror: agent %s is there, at %s", poll.name, ", ".join(sorted(poll.addresses)))
        self._polls.wake(poll.name)  # an earlier one of it
        self._flush()
        for head in poll.heads:
            self._pipelines.head(head, poll.addresses)
        for identity, why in poll.failed.items():
            self._pipelines.failed(identity, f"agent {poll.name} can't take part: {why}", poll.addresses)
        self._flush()
        if poll.heads:
            self._tell()  # what the others wait for
        until = begun + min(wait_s, self.settings.agent_lease_s / 2)
        while True:
            self._check()
            agent = self._agents.get(poll.name)
            if self._agents.has_left(poll.name, poll.run):
                raise has_left(poll.name)
            if agent is None:
                raise NotNow(f"agent {poll.name} was silent for too long meanwhile", "poll again")
            if (agent.run, agent.polls) != (poll.run, polls):
                raise NotNow(
                    f"agent {poll.name} has polled again meanwhile",
                    "wait for one answer at a time, and give agents of two hosts two names",
                )
            left = until - time.monotonic()
            if agent.version != poll.seen or left <= 0:
                flows = flows_of(self._pipelines.of(agent.addresses), agent.addresses)
                return Told(agent.version, self.settings.agent_lease_s, flows)
            await self._polls.news(poll.name, left)

    async def _leave(self, poll: Poll, until: float) -> Told:
        """Copies to its host end; waits for the switches' word on that."""
        if self._agents.leave(poll.name, poll.run):
            log.info("mirror: agent %s leaves", poll.name)
        self._flush()
        self._polls.wake(poll.name)
        switches = self._switches()
        copying = {dpid for dpid in switches if _copies_to(poll.addresses, switches[dpid])}
        while copying and (left := until - time.monotonic()) > 0:
            await self._answers.news("", left)
            switches = self._switches()
            copying = {d for d in copying if d not in switches or _copies_to(poll.addresses, switches[d])}
        return Told(0, self.settings.agent_lease_s, stopped=not copying)

    def _disputed(self, name: str, error: NotTaken) -> None:
        """One line in the log for what an agent says again and again."""
        if error.why == ADDRESS_TAKEN and self._disputes.get(name) != error.what:
            log.warning("mirror: agent %s is not taken: %s; %s", name, error.what, error.remedy)
            self._disputes.pop(name, None)
            if len(self._disputes) >= MAX_AGENTS:
                del self._disputes[next(iter(self._disputes))]
            self._disputes[name] = error.what

    def agents(self) -> tuple[AgentState, ...]:
        now = time.monotonic()
        there: Counter[str] = Counter()
        for pipeline in self.all():
            if pipeline.is_live:
                there.update(hop.destination for hop in pipeline.mirrored.values())
        return tuple(
            AgentState(
                agent.name,
                tuple(sorted(agent.addresses)),
                sum(there[address] for address in agent.addresses),
                max(0.0, now - agent.polled_s),
            )
            for agent in self._agents.all()
        )

    def counts(self) -> MirrorCounts:
        there, pipelines = self.all(), self._pipelines
        states = Counter(pipeline.state for pipeline in there)
        return MirrorCounts(
            self.settings.enabled,
            self.settings.lease_s,
            {str(state): states[state] for state in State},
            pipelines.armed,
            pipelines.closed,
            pipelines.superseded,
            pipelines.swept,
            self._late,
            {str(why): count for why, count in pipelines.refused.copy().items()},
            pipelines.arm_times.cumulative(),
            pipelines.arm_times.sum_s,
            len(self._agents.all()),
        )

    # What the fabric says and asks.

    def role_changed(self, is_master: bool) -> None:
        """Each master has pipelines of its own. What another left on switches stays for one lease, so that owners can
        announce it here; the same entries follow then.
        """
        if is_master and not self._is_master:
            self._held_until = time.monotonic() + self.settings.lease_s
        if not is_master:
            self._pipelines.clear()
            self._pipelines.take_changes()  # not sent: what switches have is the next master's to keep or to take away
            self._held.clear()
            gone = self._agents.clear()
            self._flush()
            for name in gone:
                self._polls.wake(name)
        self._is_master = is_master

    def holds(self, now: float) -> bool:
        """Whether what another master left on switches stays yet."""
        return now < self._held_until

    def switch_ready(self, switch: Switch) -> None:
        if not self.settings.enabled:
            return
        if time.monotonic() < self._held_until:
            # What this master has put there ends with its pipelines, of which some may have ended while it was away.
            found = frozenset(filter(_is_mirror, switch.flows)) - self._pipelines.entries(switch.dpid)
            self._held[switch.dpid] = found & self._held.get(switch.dpid, found)
        self._pipelines.switch_anew(switch.dpid)
        self.answered(switch)  # what it has was just read

    def network(self, topology: Topology) -> None:
        """It is now so; who asked for `entries` asks again."""
        if self.settings.enabled:
            self._pipelines.network(topology, time.monotonic())
            self._flush()

    def entries(self, dpid: Dpid) -> frozenset[FlowEntry]:
        """All that the switch should have for mirroring."""
        if not self.settings.enabled:
            return frozenset()
        wanted = self._pipelines.entries(dpid)
        held = self._held.get(dpid, frozenset())
        keys = {entry.key for entry in wanted} if held else set()
        return wanted | {entry for entry in held if entry.key not in keys}

    def answered(self, switch: Switch) -> None:
        """A switch has answered all that it was sent before."""
        self._answers.wake("")
        waiting = self._pipelines.waiting(switch.dpid)
        if not waiting:
            return
        refused = switch.refused(waiting)
        if refused:
            why = f"switch {switch.name} does not take its flow entry: {next(iter(refused.values()))}"
            self._pipelines.switch_refused(switch.dpid, frozenset(refused), why)
        self._pipelines.confirmed(switch.dpid, switch.confirmed(waiting), time.monotonic())
        self._flush()

    def tick(self, now: float) -> bool:
        """What time alone brings about; whether switches should have fewer entries of before."""
        if not self.settings.enabled or now < self._sweep_at:
            return False
        self._sweep_at = now + SWEEP_S
        swept = self._pipelines.sweep(now)
        if swept:
            log.info("mirror: %d pipelines that their owners did not announce again are removed", swept)
        for name in self._agents.sweep(now):
            log.warning(
                "mirror: agent %s is silent for %g s; its host gets no copies until it polls again",
                name, self.settings.agent_lease_s,
            )  # fmt: skip
            self._polls.wake(name)
        self._flush()
        switches = self._switches()
        for dpid in self._pipelines.waited_for() & switches.keys():
            self.answered(switches[dpid])  # what it has had already is not sent, nor answered
        self._sought = self._pipelines.take_unknown()
        if self._held and now >= self._held_until:
            self._held.clear()
            return True
        return False

    def take_sought(self) -> frozenset[str]:
        """IP addresses that hosts should be asked for: after a start hosts are known by their MAC addresses alone, and
        who talks to whom need not ask anew for long.
        """
        sought, self._sought = self._sought, frozenset()
        return sought

    # Inside.

    def _check(self) -> None:
        if not self.settings.enabled:
            raise NotNow("mirroring is off", "set mirror.enabled = true in the controller's configuration")
        if not self._is_master:
            raise NotNow("this controller is not the switches' master", "ask the one that is")

    def _flush(self) -> None:
        """Gives switches what changed, and tells who waits."""
        came, gone = self._agents.take_moved()
        if came or gone:
            self._pipelines.served(came, gone, time.monotonic())
        changes = self._pipelines.take_changes()
        switches = self._switches()
        for dpid in changes.added.keys() | changes.removed.keys():
            added, removed = changes.added.get(dpid, set()), changes.removed.get(dpid, set())
            if held := self._held.get(dpid):
                keys = {entry.key for entry in added}
                replaced = {entry for entry in held if entry.key in keys}
                removed, self._held[dpid] = removed | (replaced - added), held - replaced
            if dpid in switches and (added or removed):
                switches[dpid].amend(frozenset(added), frozenset(removed))
        is_armed = False
        for pipeline in self._pipelines.take_settled():
            log.debug("mirror %s: %s", pipeline.id, pipeline.what or pipeline.state)
            self._waiting.wake(pipeline.id)
            is_armed = is_armed or (pipeline.state is State.ARMED and self._pipelines.has(pipeline))
        self._to_tell |= self._agents.touch(self._pipelines.take_touched())
        self._to_end |= self._agents.touch(self._pipelines.take_ended())
        if self._to_end and self._ending is None:
            self._ending = asyncio.get_running_loop().call_later(END_AFTER_S, self._end)
        if is_armed:
            # Two rounds of the loop from now who waits for it has its answer on the way; then agents' are made.
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, loop.call_soon, self._tell)
        elif self._to_tell and self._telling is None:
            self._telling = asyncio.get_running_loop().call_later(TELL_AFTER_S, self._tell)

    def _tell(self) -> None:
        """Answers the polls of agents that are told something else now."""
        if self._telling is not None:
            self._telling.cancel()
            self._telling = None
        names, self._to_tell = self._to_tell, set()
        self._to_end -= names
        for name in names:
            self._polls.wake(name)

    def _end(self) -> None:
        """Answers those of agents that have not heard meanwhile of what has ended."""
        self._ending = None
        self._to_tell |= self._to_end
        self._tell()


def _is_mirror(entry: FlowEntry) -> bool:
    return entry.cookie & COOKIE_MASK == COOKIE and entry.cookie >> 32 & 0xFFFF == Owner.MIRROR


def _copies_to(addresses: Collection[str], switch: Switch) -> bool:
    """Whether a switch may still send copies to a host with one of these addresses."""
    return any(
        isinstance(action, SetField) and action.field in ("ipv4_dst", "ipv6_dst") and action.value in addresses
        for entry in switch.flows | switch.leaving()
        if _is_mirror(entry)
        for action in entry.actions
    )

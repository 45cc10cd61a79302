"""Pipelines between those who announce them and the switches: what is announced goes to switches at once, and who waits
is told when all of them have confirmed.

All of it runs on the loop's thread, but for `all` and `counts`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Protocol

from ..control import NotNow
from ..flows.entry import COOKIE, COOKIE_MASK, FlowEntry, Owner
from ..net.topology import Dpid, Topology
from .counts import MirrorCounts
from .model import Hop, Pipeline, State
from .pipelines import Pipelines
from .settings import MirrorSettings

log = logging.getLogger(__name__)

SWEEP_S = 1.0


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


class Mirrors:
    """`switches()`: those that this controller is master of, by datapath id. Where mirroring is off it does nothing."""

    def __init__(self, settings: MirrorSettings, switches: Callable[[], Mapping[Dpid, Switch]]) -> None:
        self.settings = settings
        self._switches = switches
        self._pipelines = Pipelines(settings.limits)
        self._waiting: dict[str, set[asyncio.Future[None]]] = {}
        self._late = 0
        self._is_master = False
        self._held_until = 0.0
        self._held: dict[Dpid, frozenset[FlowEntry]] = {}  # from before this controller was master
        self._sweep_at = 0.0
        self._sought: frozenset[str] = frozenset()

    # What owners of pipelines and operators ask.

    async def announce(self, hop: Hop, wait_s: float) -> Pipeline:
        """Takes a hop, and waits so long for its pipeline to be armed or refused. Raises Refused or NotNow."""
        self._check()
        begun = time.monotonic()
        try:
            pipeline = self._pipelines.announce(hop, begun)
        finally:
            self._flush()  # a hop that is refused may have ended another pipeline
        if wait_s <= 0:
            return pipeline
        return await self._settled(pipeline.id, begun + wait_s)

    async def _settled(self, identity: str, until: float) -> Pipeline:
        while True:
            try:
                pipeline = self._pipelines.get(identity)
            except KeyError:
                raise NotNow("the pipeline was closed, or superseded, meanwhile", "announce its present hops") from None
            left = until - time.monotonic()
            if pipeline.settled:
                return pipeline
            if left <= 0:
                self._late += 1
                return pipeline
            told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(identity, set()).add(told)
            with contextlib.suppress(TimeoutError):
                try:
                    await asyncio.wait_for(told, left)
                finally:
                    self._forget(identity, told)

    def close(self, identity: str) -> None:
        """Raises KeyError or NotNow."""
        self._check()
        self._pipelines.close(identity)
        self._flush()

    def all(self) -> tuple[Pipeline, ...]:
        return self._pipelines.all()

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
            self._held.clear()
            self._flush()
        self._is_master = is_master

    def switch_ready(self, switch: Switch) -> None:
        if not self.settings.enabled:
            return
        if time.monotonic() < self._held_until:
            self._held[switch.dpid] = frozenset(filter(_is_mirror, switch.flows))
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
            log.info("mirror: %d pipelines that nobody announced again are removed", swept)
        self._flush()
        switches = self._switches()
        for dpid in {dpid for pipeline in self._pipelines.all() for dpid in pipeline.waits_for} & switches.keys():
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
        for pipeline in self._pipelines.take_settled():
            log.debug("mirror %s: %s", pipeline.id, pipeline.what or pipeline.state)
            for told in self._waiting.get(pipeline.id, ()):
                if not told.done():
                    told.set_result(None)

    def _forget(self, identity: str, told: asyncio.Future[None]) -> None:
        waiting = self._waiting[identity]
        waiting.discard(told)
        if not waiting:
            del self._waiting[identity]


def _is_mirror(entry: FlowEntry) -> bool:
    return entry.cookie & COOKIE_MASK == COOKIE and entry.cookie >> 32 & 0xFFFF == Owner.MIRROR

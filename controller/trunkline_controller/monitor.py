"""What switches count, asked of them again and again: loads of ports, queues, and flow entries.

Runs on the loop's thread; what it found is replaced as a whole, so any thread may read it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from .fabric import Fabric
from .flows.entry import Table
from .net.topology import Dpid, End
from .openflow.replies import PortCounts, QueueCounts
from .openflow.session import Session

log = logging.getLogger(__name__)

AT_ONCE = 16  # switches that are asked at a time
COUNTERS_EVERY = 2  # polls; counters of CLASSIFY
AUDIT_EVERY = 30  # polls; whether a switch still has what it was given
INTEREST_S = 15.0  # all counters of a switch are read for so long after somebody asked for them


@dataclass(frozen=True)
class PortLoad:
    """Since the poll before, and since the switch counts."""

    sent_bit_s: float
    received_bit_s: float
    counts: PortCounts


@dataclass(frozen=True)
class QueueLoad:
    sent_bit_s: float
    counts: QueueCounts


class Monitor:
    """`has_queues()`: whether there are queues to ask about."""

    def __init__(self, fabric: Fabric, every_s: float, has_queues: Callable[[], bool]) -> None:
        self.ports: Mapping[End, PortLoad] = {}
        self.queues: Mapping[tuple[End, int], QueueLoad] = {}
        self._fabric = fabric
        self._every_s = every_s
        self._has_queues = has_queues
        self._round = 0
        self._port_at: dict[End, tuple[float, PortCounts]] = {}
        self._queue_at: dict[tuple[End, int], tuple[float, QueueCounts]] = {}
        self._interest: dict[Dpid, float] = {}

    def interest(self, dpid: Dpid, now: float) -> None:
        """Somebody looks at a switch's flow entries."""
        self._interest[dpid] = now + INTEREST_S

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            begun = loop.time()
            try:
                await self.poll()
            except Exception:
                log.exception("asking the switches for their counters failed; going on")
            await asyncio.sleep(max(self._every_s - (loop.time() - begun), self._every_s / 10))

    async def poll(self) -> None:
        """Asks all switches once."""
        self._round += 1
        some = asyncio.Semaphore(AT_ONCE)
        ports: dict[End, PortLoad] = {}
        queues: dict[tuple[End, int], QueueLoad] = {}

        async def ask(session: Session) -> None:
            async with some:
                try:
                    await self._ask(session, ports, queues)
                except (OSError, TimeoutError, ValueError) as error:
                    log.debug("switch %s: no counters: %s", session.name, error or "too late")
                except Exception:
                    log.exception("switch %s: no counters", session.name)

        await asyncio.gather(*(ask(session) for session in self._fabric.sessions.values()))
        self.ports, self.queues = ports, queues
        self._port_at = {end: at for end, at in self._port_at.items() if end in ports}
        self._queue_at = {key: at for key, at in self._queue_at.items() if key in queues}

    async def _ask(
        self, session: Session, ports: dict[End, PortLoad], queues: dict[tuple[End, int], QueueLoad]
    ) -> None:
        loop = asyncio.get_running_loop()
        counts = await session.port_counts()
        now = loop.time()
        for number, port in counts.items():
            end = End(session.dpid, number)
            at, before = self._port_at.get(end, (now, port))
            self._port_at[end] = now, port
            sent = _rate(port.sent_bytes - before.sent_bytes, now - at)
            ports[end] = PortLoad(sent, _rate(port.received_bytes - before.received_bytes, now - at), port)
        if self._has_queues():
            found = await session.queue_counts()
            now = loop.time()
            for (number, queue), counted in found.items():
                key = End(session.dpid, number), queue
                at, earlier = self._queue_at.get(key, (now, counted))
                self._queue_at[key] = now, counted
                queues[key] = QueueLoad(_rate(counted.sent_bytes - earlier.sent_bytes, now - at), counted)
        if self._interest.get(session.dpid, 0.0) > now:
            await session.counted()
        elif self._has_queues() and self._round % COUNTERS_EVERY == 0:
            await session.counted(Table.CLASSIFY)
        if (self._round + session.dpid) % AUDIT_EVERY == 0 and session.in_step:
            await self._audit(session)

    async def _audit(self, session: Session) -> None:
        """Puts right what somebody else changed."""
        sent, expected, expected_groups = session.changes_sent, len(session.flows), session.groups.copy()
        found, groups = await session.count(), await session.read_groups()
        same_groups = bool(session.refusals) or groups == expected_groups
        if (found != expected or not same_groups) and session.changes_sent == sent and session.in_step:
            log.warning(
                "switch %s: has %d of %d flow entries that it was given, and %s; putting it right",
                session.name, found, expected, "the same groups" if same_groups else "other groups",
            )  # fmt: skip
            await session.read()


def _rate(octets: int, seconds: float) -> float:
    """In bits a second; counters that began anew say nothing."""
    return octets * 8 / seconds if seconds > 0 and octets > 0 else 0.0

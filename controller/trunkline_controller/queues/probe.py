"""Whether a port's queues have effect, found out by sending packets into them and reading their counters.

A switch may accept OpenFlow's set_queue and do nothing of the kind (Open vSwitch's userspace datapath does), so what it
says of itself is not asked. Frames are sent out of the port into each queue but the default one, first by set_queue and
then, where that has no effect, by the queue's mark: either the queue's own counter rises by as many, or it does not.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Protocol

from ..control import QueueMode
from ..flows.entry import Action, FlowEntry, Match, Output, Owner, SetQueue, Table, cookie
from ..net.topology import Dpid, End, PortNo
from .wanted import PortQueues, QueueWanted

SOURCE = "02:74:72:70:72:61"
DESTINATION = "02:74:72:70:72:62"  # locally administered, nobody's
LEAST_FRAMES = 20
MOST_FRAMES = 500
WIRE_BITS = 8 * 64  # of a frame, with its checksum
QUIET_S = 0.2  # how long a queue is watched before it is probed
SETTLE_S = 2.0  # how late a switch's counters may be
ASK_S = 0.05  # between two looks at them
ANSWER_S = 5.0  # how long a switch may take to answer


class ProbeEdge(Protocol):
    """What probing asks of a connected switch; `port_queues` keeps the promise. May be called from any thread."""

    def packet_out(self, dpid: Dpid, data: bytes, actions: tuple[Action, ...]) -> None:
        """Sends a frame by OFPT_PACKET_OUT (in_port CONTROLLER, no buffer). Raises KeyError: no such switch."""
        ...

    def queue_packets(self, dpid: Dpid, port: PortNo, timeout_s: float) -> Mapping[int, int]:
        """Packets that each queue of a port has sent (OFPMP_QUEUE of all queues), by queue number. Waits for the
        switch. Raises KeyError where there is no such switch or port, TimeoutError where it does not answer.
        """
        ...


class Verdict(StrEnum):
    """Whether frames meant for a queue went through it."""

    EFFECTIVE = "effective"
    INEFFECTIVE = "ineffective"
    UNSURE = "unsure"  # other traffic in the queue, or frames lost or late
    ABSENT = "absent"  # the port has no such queue


@dataclass(frozen=True)
class PortProbe:
    """What was found at a port. `why` says in words what is amiss, empty where a mode is in force."""

    end: End
    mode: QueueMode
    why: str = ""


def passing_by() -> FlowEntry:
    """What each switch needs so that a probe that reaches it ends there: for table ADMIT."""
    return FlowEntry(Table.ADMIT, 65_000, Match(eth_dst=DESTINATION), cookie=cookie(Owner.PROBE))


def frame(dscp: int) -> bytes:
    """A UDP packet to port 9 (discard), between addresses for documentation, that lives for no hop."""
    ethernet = bytes.fromhex((DESTINATION + SOURCE).replace(":", "")) + struct.pack("!H", 0x0800)
    udp = struct.pack("!HHHH", 9, 9, 8 + 18, 0) + b"trunkline probe\0\0\0"
    addresses = bytes((192, 0, 2, 1, 192, 0, 2, 2))
    start = struct.pack("!BBHHHBB", 0x45, dscp << 2, 20 + len(udp), 0, 0, 1, 17)
    total = sum(struct.unpack("!5H", start)) + sum(struct.unpack("!4H", addresses))
    total = (total & 0xFFFF) + (total >> 16)
    checksum = ~((total & 0xFFFF) + (total >> 16)) & 0xFFFF
    return ethernet + start + struct.pack("!H", checksum) + addresses + udp


def frames_over(background: int, drain_bit_s: int = 0) -> int:
    """How many frames stand out where this many packets of others passed in QUIET_S, but no more than leave at
    `drain_bit_s` (0: unknown) in half of SETTLE_S: the other half is for the others' packets and late counters.
    """
    most = MOST_FRAMES if drain_bit_s <= 0 else max(1, int(drain_bit_s * SETTLE_S / 2 / WIRE_BITS))
    return min(max(LEAST_FRAMES, int(8 * background * SETTLE_S / QUIET_S)), MOST_FRAMES, most)


def judge(expected: float, risen: int, sent: int) -> Verdict:
    """A counter rose by `risen` while `sent` frames were meant for it, and `expected` packets of others by their rate
    before. It takes both that others are few beside the frames, and that the rise is about the frames' number, or
    about what others explain. What lies between may be frames that were lost or are late.
    """
    if expected < 0 or not 0 <= risen < 2 * sent or 4 * expected >= sent:
        return Verdict.UNSURE
    if risen >= sent:
        return Verdict.EFFECTIVE
    return Verdict.INEFFECTIVE if 4 * (risen - expected) < sent else Verdict.UNSURE


def mode_of(by_set_queue: Mapping[str, Verdict], by_dscp: Mapping[str, Verdict]) -> tuple[QueueMode, str]:
    """A port's mode, of the verdicts on its queues but the default; and why it is none that is in force."""
    if not by_set_queue:
        return QueueMode.UNKNOWN, "the port has no queue but the default"
    for mode, verdicts in ((QueueMode.SET_QUEUE, by_set_queue), (QueueMode.DSCP, by_dscp)):
        if verdicts and all(verdict is Verdict.EFFECTIVE for verdict in verdicts.values()):
            return mode, ""
    absent = _those(by_set_queue, Verdict.ABSENT)
    if absent:
        remedy = "run trunkline-controller agent at the switch's host, or make the queues by the switch's own means"
        return QueueMode.NONE, f"the port has no queue {absent}: {remedy}"
    unsure = _those({**by_set_queue, **by_dscp}, Verdict.UNSURE)
    if unsure:
        return QueueMode.UNKNOWN, f"other traffic in queue {unsure}, or frames lost or late: no clear answer"
    failed = f"set_queue has no effect on queue {_those(by_set_queue, Verdict.INEFFECTIVE)}"
    return QueueMode.NONE, f"{failed}, and marks have none on queue {_those(by_dscp, Verdict.INEFFECTIVE)}"


def _those(verdicts: Mapping[str, Verdict], which: Verdict) -> str:
    return ", ".join(name for name, verdict in verdicts.items() if verdict is which)


@dataclass
class _Probing:
    """A port that is being probed."""

    port: PortQueues
    trouble: str = ""

    @property
    def end(self) -> End:
        return End(self.port.dpid, self.port.port)

    @property
    def queues(self) -> Sequence[QueueWanted]:
        return [queue for queue in self.port.queues if queue.number != self.port.default]

    def drain_bit_s(self, queue: QueueWanted) -> int:
        """What frames leave a queue with while each of the port's queues sends; 0: unknown."""
        rates = (queue.max_bit_s, self.port.rate_bit_s // max(1, len(self.queues)))
        return min((rate for rate in rates if rate > 0), default=0)

    @property
    def default_mark(self) -> int:
        return next((queue.dscp for queue in self.port.queues if queue.number == self.port.default), 0)


@dataclass(frozen=True)
class _Look:
    """A port's counters at a moment."""

    at_s: float
    packets: Mapping[int, int]


@dataclass
class _Trial:
    """A port in one round: two looks before its frames, one after."""

    one: _Probing
    first: _Look
    quiet: _Look
    sent: dict[int, int] = field(default_factory=dict)  # by queue number
    after: _Look = _Look(0.0, MappingProxyType({}))

    def arrived(self) -> bool:
        return all(self._risen(number) >= count for number, count in self.sent.items())

    def verdicts(self) -> dict[str, Verdict]:
        found = {}
        for queue in self.one.queues:
            number = queue.number
            if number not in self.sent or number not in self.after.packets:
                found[queue.name] = Verdict.ABSENT
                continue
            before_s, while_s = self.quiet.at_s - self.first.at_s, self.after.at_s - self.quiet.at_s
            background = self.quiet.packets[number] - self.first.packets[number]
            expected = background * while_s / before_s if before_s > 0 else float(background)
            found[queue.name] = judge(expected, self._risen(number), self.sent[number])
        return found

    def _risen(self, number: int) -> int:
        return self.after.packets.get(number, 0) - self.quiet.packets[number]


class Prober:
    """Probes ports, many at once. Blocks for a few seconds."""

    def __init__(
        self,
        edge: ProbeEdge,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._edge = edge
        self._sleep = sleep
        self._clock = clock

    def probe(self, ports: Iterable[PortQueues]) -> tuple[PortProbe, ...]:
        """What is in force at each port."""
        probing = [_Probing(port) for port in ports]
        by_set_queue = self._twice(probing, set_queue=True)
        rest = [one for one in probing if mode_of(by_set_queue[one.end], {})[0] is not QueueMode.SET_QUEUE]
        by_dscp = self._twice(rest, set_queue=False)
        found = []
        for one in probing:
            mode, why = mode_of(by_set_queue[one.end], by_dscp.get(one.end, {}))
            found.append(PortProbe(one.end, *((QueueMode.UNKNOWN, one.trouble) if one.trouble else (mode, why))))
        return tuple(found)

    def _twice(self, probing: Sequence[_Probing], set_queue: bool) -> dict[End, dict[str, Verdict]]:
        """An effect is one that shows twice: others' packets may come in a burst, but not so again."""
        verdicts = self._round(probing, set_queue)
        again = [one for one in probing if Verdict.EFFECTIVE in verdicts[one.end].values()]
        for end, second in self._round(again, set_queue).items():
            for queue, verdict in second.items():
                if verdicts[end][queue] is Verdict.EFFECTIVE and verdict is not Verdict.EFFECTIVE:
                    verdicts[end][queue] = Verdict.UNSURE
        return verdicts

    def _round(self, probing: Sequence[_Probing], set_queue: bool) -> dict[End, dict[str, Verdict]]:
        """Verdicts on all queues but the default ones, by one way of telling them."""
        if not probing:
            return {}
        first = {one.end: self._look(one) for one in probing}
        self._sleep(QUIET_S)
        trials = [_Trial(one, first[one.end], self._look(one)) for one in probing]
        for trial in trials:
            self._send(trial, set_queue)
        self._settle(trials)
        return {trial.one.end: trial.verdicts() for trial in trials}

    def _send(self, trial: _Trial, set_queue: bool) -> None:
        one = trial.one
        out = Output(one.port.port)
        for queue in one.queues:
            before, now = trial.first.packets.get(queue.number), trial.quiet.packets.get(queue.number)
            if one.trouble or before is None or now is None:
                continue
            # A frame that set_queue is to tell carries the mark of another queue, the default one.
            data = frame(one.default_mark if set_queue else queue.dscp)
            actions: tuple[Action, ...] = (SetQueue(queue.number), out) if set_queue else (out,)
            count = frames_over(now - before, one.drain_bit_s(queue))
            try:
                for _ in range(count):
                    self._edge.packet_out(one.port.dpid, data, actions)
            except (KeyError, OSError):
                one.trouble = "the switch is not connected"
            trial.sent[queue.number] = count

    def _settle(self, trials: Iterable[_Trial]) -> None:
        """Looks until all counters have risen by what was sent, or have had the time to."""
        end_s = self._clock() + SETTLE_S
        late = list(trials)
        while True:
            for trial in late:
                trial.after = self._look(trial.one)
            late = [trial for trial in late if not trial.one.trouble and not trial.arrived()]
            if not late or self._clock() >= end_s:
                return
            self._sleep(ASK_S)

    def _look(self, one: _Probing) -> _Look:
        packets: Mapping[int, int] = {}
        if not one.trouble:
            try:
                packets = self._edge.queue_packets(one.port.dpid, one.port.port, ANSWER_S)
            except (KeyError, OSError):  # TimeoutError is one
                one.trouble = "the switch does not tell its queues' counters"
        return _Look(self._clock(), packets)

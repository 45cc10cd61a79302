"""One port of a switch: whether it may be used, and what is at the other end of its cable.

           up, and stable                 LLDP of a switch of ours
    DOWN ----------------> UNKNOWN ----------------------------------> LINK
     ^                        | |  no LLDP for `settle_s`               |
     |                        | +-----------------------> EDGE ---------+ (LLDP, while no host counts against it)
     +------------------------+--------------- down --------------------+
                              ^                                         |
                              +-------- LLDP is no longer heard --------+

A port that goes down is out of use at once; how soon it is in use again depends on how often that happened lately.
One that led to a switch and has not gone down since most likely still does, though that switch can't be heard: what
comes in there says nothing of hosts, and it stays UNKNOWN for `hold` at first, between Linux bridges for good.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum

from .topology import End, Port

FLAPS_KEPT = 8
FLAP_WINDOW_S = 60.0
FLAPPING = 4  # downs within the window: from here on an operator hears of it
MAX_HOLD_S = 30.0


class Kind(Enum):
    """What a port leads to, as far as is known."""

    DOWN = "down"
    UNKNOWN = "unknown"
    EDGE = "edge"
    LINK = "link"


@dataclass
class PortState:
    """Times are those of the machine that uses it, in seconds."""

    port: Port
    kind: Kind = Kind.DOWN
    since: float = 0.0  # in this kind
    usable_at: float = 0.0  # while it is up but held down
    heard: dict[End, float] = field(default_factory=dict)  # whose LLDP came in here, and when last
    led_to: frozenset[End] = frozenset()  # while it was a LINK last, unless it has gone down since
    held_until: float = 0.0  # not an EDGE before
    downs: deque[float] = field(default_factory=lambda: deque(maxlen=FLAPS_KEPT))

    def goes_down(self, now: float) -> None:
        if self.port.up:
            self.downs.append(now)
        self.kind, self.since = Kind.DOWN, now
        self.heard.clear()
        self.led_to, self.held_until = frozenset(), 0.0

    def comes_up(self, now: float) -> None:
        """It may be used from `usable_at` on: at once after a first loss, later each time that it was lost again."""
        flaps = self.flaps(now)
        self.usable_at = now if flaps <= 1 else now + min(MAX_HOLD_S, 0.5 * 2 ** (flaps - 1))

    def flaps(self, now: float) -> int:
        return sum(1 for at in self.downs if now - at < FLAP_WINDOW_S)

    def becomes(self, kind: Kind, now: float) -> None:
        self.kind, self.since = kind, now

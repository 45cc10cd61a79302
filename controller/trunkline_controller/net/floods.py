"""How many packets to unknown destinations are flooded: for one port, for all together, and for what the controller
itself announces. Pure: time comes in from outside.
"""

from __future__ import annotations

from ..rates import Buckets
from .discovery import Discovery
from .topology import End

ALARM_S = 60.0
PORT_SHARE = 0.1  # of all frames


class Floods:
    """`frames_per_s`: packets a second that switches send for what is flooded, one a switch; of these one port's
    packets may take PORT_SHARE.
    """

    def __init__(self, frames_per_s: float, discovery: Discovery) -> None:
        self._frames_per_s = frames_per_s
        self._discovery = discovery
        self._all = Buckets(frames_per_s, 2 * frames_per_s)
        self._of_port = Buckets(PORT_SHARE * frames_per_s, 4 * PORT_SHARE * frames_per_s)
        self._announced = Buckets(PORT_SHARE * frames_per_s, 4 * PORT_SHARE * frames_per_s)

    def may_announce(self, frames: int, now: float) -> bool:
        """The controller's own, for which others leave room."""
        return self._announced.take("announcements", now, frames)

    def may_flood(self, at: End, frames: int, now: float) -> bool:
        """What came in at a port; an alarm says so where it is too much."""
        if not self._of_port.take(at, now, frames):
            self._discovery.alarms.sound(
                f"flood {at}",
                f"port {self._discovery.port_name(at)} sends more packets to unknown destinations than one port may; "
                "the rest is dropped",
                "find out which host there scans the network or floods; if it is meant so, raise network.flood_frames",
                now,
                ALARM_S,
                of_hosts=True,
            )
            return False
        if not self._all.take("floods", now, frames):
            self._discovery.alarms.sound(
                "floods",
                f"packets to unknown destinations would cost more than {self._frames_per_s:g} frames a second; "
                "the rest is dropped",
                "find out which hosts scan the network or flood; if it is meant so, raise network.flood_frames",
                now,
                ALARM_S,
            )
            return False
        return True

    def forget(self, now: float) -> None:
        """Ports of which nothing was flooded for a while."""
        self._of_port.forget(now)

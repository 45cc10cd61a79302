"""Whether a port's queues have effect, found out by sending packets into them and reading their counters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ..flows.entry import Action
from ..net.topology import Dpid, PortNo


class ProbeEdge(Protocol):
    """What probing asks of a connected switch; `openflow` keeps the promise. May be called from any thread."""

    def packet_out(self, dpid: Dpid, data: bytes, actions: tuple[Action, ...]) -> None:
        """Sends a frame by OFPT_PACKET_OUT (in_port CONTROLLER, no buffer). Raises KeyError: no such switch."""
        ...

    def queue_packets(self, dpid: Dpid, port: PortNo, timeout_s: float) -> Mapping[int, int]:
        """Packets that each queue of a port has sent (OFPMP_QUEUE of all queues), by queue number. Waits for the
        switch. Raises KeyError where there is no such switch or port, TimeoutError where it does not answer.
        """
        ...

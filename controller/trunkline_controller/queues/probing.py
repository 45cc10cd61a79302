"""Ports are probed when they are due, on a thread of their own: a probe waits for switches."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from ..control import QueueMode
from ..net.topology import Dpid, End
from .modes import PROVED, Modes
from .probe import Prober
from .wanted import QueuesReport, QueuesWanted

log = logging.getLogger(__name__)

LOOK_S = 0.5
AT_ONCE = 64  # ports


class Probing:
    """From `start` to `stop`. `wanted()` is asked for what ports should have now, `connections()` for the switches'
    present connections, of which each is an object of its own.
    """

    def __init__(
        self,
        prober: Prober,
        wanted: Callable[[], QueuesWanted],
        is_master: Callable[[], bool],
        connections: Callable[[], Mapping[Dpid, object]],
    ) -> None:
        self._prober = prober
        self._wanted = wanted
        self._is_master = is_master
        self._connections = connections
        self._connected: Mapping[Dpid, object] = {}
        self._modes = Modes()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="probe", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def state(self, end: End) -> tuple[QueueMode, str]:
        """As `Modes.state` has it."""
        with self._lock:
            return self._modes.state(end)

    def reported(self, report: QueuesReport) -> None:
        with self._lock:
            self._modes.reported(time.monotonic(), report)

    def _run(self) -> None:
        while not self._stop.wait(LOOK_S):
            try:
                self.look()
            except Exception:
                log.exception("probing queues failed; going on")

    def look(self) -> None:
        """Probes what is due now."""
        before, self._connected = self._connected, self._connections()
        if not self._is_master():
            return
        now_s = time.monotonic()
        with self._lock:
            self._modes.want(now_s, self._wanted())
            for dpid, connection in self._connected.items():
                if before.get(dpid) is not connection:
                    self._modes.connected(now_s, dpid)
            due = self._modes.due(now_s)[:AT_ONCE]
        if not due:
            return
        results = self._prober.probe(due)
        ends = {End(port.dpid, port.port): port.name for port in due}
        with self._lock:
            before = {end: self._modes.state(end) for end in ends}
            self._modes.found(time.monotonic(), due, results)
            after = {end: self._modes.state(end) for end in ends}
        for end, (mode, why) in after.items():
            if (mode, why) != before[end]:
                unconfirmed = ", which the last probe could not confirm" if mode in PROVED and why else ""
                log.info(
                    "queues of port %016x/%s: %s%s%s", end.dpid, ends[end], mode, unconfirmed, f": {why}" if why else ""
                )

"""Ports are probed when they are due, on a thread of their own: a probe waits for switches."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from ..control import QueueMode
from ..net.topology import Dpid, End
from .modes import Modes
from .probe import Prober
from .wanted import QueuesReport, QueuesWanted

log = logging.getLogger(__name__)

LOOK_S = 0.5
AT_ONCE = 64  # ports


class Probing:
    """From `start` to `stop`. `wanted()` is asked for what ports should have now, from any thread."""

    def __init__(self, prober: Prober, wanted: Callable[[], QueuesWanted], is_master: Callable[[], bool]) -> None:
        self._prober = prober
        self._wanted = wanted
        self._is_master = is_master
        self._modes = Modes()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="probe", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()

    def mode(self, end: End) -> QueueMode:
        with self._lock:
            return self._modes.mode(end)

    def why(self, end: End) -> str:
        """Why no mode is in force at a port; empty where one is."""
        with self._lock:
            return self._modes.why(end)

    def reported(self, report: QueuesReport) -> None:
        with self._lock:
            self._modes.reported(time.monotonic(), report)

    def connected(self, dpid: Dpid) -> None:
        with self._lock:
            self._modes.connected(time.monotonic(), dpid)

    def _run(self) -> None:
        while not self._stop.wait(LOOK_S):
            try:
                self._look()
            except Exception:
                log.exception("probing queues failed; going on")

    def _look(self) -> None:
        if not self._is_master():
            return
        with self._lock:
            self._modes.want(time.monotonic(), self._wanted())
            due = self._modes.due(time.monotonic())[:AT_ONCE]
        if not due:
            return
        results = self._prober.probe(due)
        with self._lock:
            before = {result.end: self._modes.mode(result.end) for result in results}
            self._modes.found(time.monotonic(), due, results)
        names = {End(port.dpid, port.port): port.name for port in due}
        for result in results:
            if result.mode is not before[result.end]:
                why = f": {result.why}" if result.why else ""
                log.info("queues of port %016x/%s: %s%s", result.end.dpid, names[result.end], result.mode, why)

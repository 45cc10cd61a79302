"""The agent's loop: what the controller wants, what the database has, and what became of it.

Two threads: one polls the controller, one sees to database and filters and reports. The agent keeps what it has made
while the controller does not answer, or does not know yet what its switches should have.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Mapping

import ovs.poller

from ...net.topology import Dpid
from ..wanted import PortReport, QueuesReport, QueuesWanted
from . import filters, rows
from .client import Client, ControllerError, Told
from .database import Database, DatabaseError, Outcome, PortAt
from .settings import AgentSettings
from .tc import TcError, TrafficControl

log = logging.getLogger("trunkline.agent")

POLL_S = 25.0
FIRST_RETRY_S = 0.2
LAST_RETRY_S = 5.0
FIRST_DATABASE_S = 10.0
AGAIN_S = 1.0  # after a look that found a problem: a port that was just made is not ready at once


class Agent:
    """Runs until `stop`."""

    def __init__(self, settings: AgentSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._polls = self._client()
        # Between the threads, under the lock:
        self._dpids: tuple[Dpid, ...] = ()
        self._wanted: QueuesWanted | None = None
        self._version = ""  # of what the controller said last
        self._report_again = False
        self._refused = ""  # why the last report was not taken

    def stop(self) -> None:
        """From any thread or signal handler: `run` returns soon. What was made stays."""
        self._stopped.set()
        self._wake()
        self._polls.abort()

    def run(self) -> None:
        """Raises DatabaseError where there is no database to begin with."""
        database = Database(self._settings.database, self._settings.bridges)
        traffic = TrafficControl()
        poller = threading.Thread(target=self._poll, name="poll", daemon=True)
        try:
            self._connect(database)
            poller.start()
            self._work(database, traffic)
        finally:
            self._stopped.set()
            self._polls.abort()
            if poller.is_alive():
                poller.join(5)
            traffic.close()
            database.close()
            os.close(self._wake_read)
            os.close(self._wake_write)

    def _client(self) -> Client:
        return Client(self._settings.controller, self._settings.token(), self._settings.tls())

    def _wake(self) -> None:
        with contextlib.suppress(OSError):  # it is awake already, or has ended
            os.write(self._wake_write, b"x")

    # The polls' thread

    def _poll(self) -> None:
        retry_s, failed = FIRST_RETRY_S, ""
        asked: tuple[Dpid, ...] = ()
        told: Told | None = None
        while not self._stopped.is_set():
            with self._lock:
                dpids = self._dpids
            seen = told.version if told is not None and dpids == asked and not failed else ""
            if not dpids:
                self._stopped.wait(FIRST_RETRY_S)
                continue
            try:
                answer = self._polls.wanted(dpids, seen, POLL_S)
            except ControllerError as error:
                if str(error) != failed and not self._stopped.is_set():
                    log.warning("%s", error)
                failed = str(error)
                self._stopped.wait(retry_s)
                retry_s = min(2 * retry_s, LAST_RETRY_S)
                continue
            if failed:
                log.info("%s: answers again", self._settings.controller)
            if failed or answer != told:
                with self._lock:
                    # One that was away, began anew or did not know these switches knows nothing of what was done.
                    self._report_again = True
                    self._version = answer.version
                    # What it is not sure of stays as it was sure of it last.
                    wanted = answer.wanted if self._wanted is None else answer.wanted.over(self._wanted)
                    if wanted != self._wanted:
                        self._wanted = wanted
                self._wake()
            elif seen:
                # It was to wait for news. One that does not is not asked without a pause.
                self._stopped.wait(FIRST_RETRY_S)
            asked, told, retry_s, failed = dpids, answer, FIRST_RETRY_S, ""

    # The worker's thread

    def _connect(self, database: Database) -> None:
        end_s = time.monotonic() + FIRST_DATABASE_S
        while not self._stopped.is_set():
            database.run()
            if database.here:
                return
            left_s = end_s - time.monotonic()
            if left_s <= 0:
                raise DatabaseError(
                    f"{self._settings.database}: no answer in {FIRST_DATABASE_S:.0f} s; "
                    "does ovsdb-server run, and may the agent connect? (agent.database)"
                )
            self._block(database, left_s)

    def _work(self, database: Database, traffic: TrafficControl) -> None:
        client = self._client()
        ports: tuple[PortReport, ...] | None = None
        report: QueuesReport | None = None
        told: QueuesReport | None = None  # what the controller knows of it
        last: QueuesWanted | None = None
        seen, check_s, tell_s = -1, 0.0, 0.0
        try:
            while not self._stopped.is_set():
                seqno = database.run()
                with self._lock:
                    if database.here:
                        self._dpids = database.dpids()
                    wanted, version = self._wanted, self._version
                    again, self._report_again = self._report_again, False
                if again:
                    told = None
                now_s = time.monotonic()
                if wanted is not None and (wanted is not last or seqno != seen or now_s >= check_s):
                    ports = self._see_to(database, traffic, wanted)
                    wrong = any(port.problem for port in ports)
                    again_s = min(AGAIN_S, self._settings.check_s) if wrong else self._settings.check_s
                    seen, last, check_s = database.run(), wanted, now_s + again_s
                if ports is not None:
                    report = QueuesReport(self._settings.called, version, ports)
                if report is not None and report != told and now_s >= tell_s:
                    if self._tell(client, report, told):
                        told = report
                    else:
                        tell_s = now_s + LAST_RETRY_S
                    continue
                due_s = check_s if wanted is not None else now_s + self._settings.check_s
                if report != told:
                    due_s = min(due_s, tell_s)
                self._block(database, max(0.0, due_s - now_s))
        finally:
            client.close()

    def _block(self, database: Database, at_most_s: float) -> None:
        poller = ovs.poller.Poller()
        database.wait(poller)
        poller.fd_wait(self._wake_read, ovs.poller.POLLIN)
        poller.timer_wait(int(1000 * at_most_s) + 1)
        poller.block()
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake_read, 4096)

    def _see_to(self, database: Database, traffic: TrafficControl, wanted: QueuesWanted) -> tuple[PortReport, ...]:
        """Makes queues and filters what they should be; what became of them, port by port."""
        here = set(database.dpids())
        ports = {PortAt(port.dpid, port.name): port for port in wanted.ports if port.dpid in here}
        leads = {at: filters.wanted(port) for at, port in ports.items()}
        problems: dict[PortAt, str] = {}
        with_filters_missing = set()
        for at, desired in leads.items():
            try:
                if traffic.prune(at.name, desired):
                    with_filters_missing.add(at)
            except TcError as error:
                problems[at] = str(error)
        try:
            records = {at: rows.record(port) for at, port in ports.items()}
            undecided = {PortAt(dpid, name) for dpid, name in wanted.undecided}
            outcome = database.ensure(records, wanted.switches, undecided)
            problems.update(outcome.problems)
        except DatabaseError as error:
            outcome = Outcome()
            problems.update(dict.fromkeys(ports, str(error)))
        for at in (leads.keys() if outcome.changed else with_filters_missing) - problems.keys():
            try:
                traffic.ensure(at.name, leads[at])
            except TcError as error:
                problems[at] = str(error)
        return tuple(PortReport(at.dpid, at.name, problems.get(at, "")) for at in sorted(ports, key=_order))

    def _tell(self, client: Client, report: QueuesReport, before: QueuesReport | None) -> bool:
        """Whether the controller has been told."""
        said: Mapping[tuple[Dpid, str], str] = {(p.dpid, p.name): p.problem for p in before.ports} if before else {}
        for port in report.ports:
            if port.problem and said.get((port.dpid, port.name)) != port.problem:
                log.warning("%016x %s: %s", port.dpid, port.name, port.problem)
        if before is None or before.version != report.version:
            wrong = sum(bool(port.problem) for port in report.ports)
            log.info("queues %s: %d ports, %d with problems", report.version, len(report.ports), wrong)
        try:
            client.report(report)
        except ControllerError as error:
            if str(error) != self._refused:
                log.warning("%s", error)
            self._refused = str(error)
            return False
        self._refused = ""
        return True


def _order(at: PortAt) -> tuple[int, str]:
    return at.dpid, at.name


def clear(settings: AgentSettings) -> int:
    """Takes all of our queues from this host's switches, filters with them; returns of how many ports."""
    database = Database(settings.database, settings.bridges)
    try:
        end_s = time.monotonic() + FIRST_DATABASE_S
        while not database.here:
            database.run()
            if time.monotonic() > end_s:
                raise DatabaseError(f"{settings.database}: no answer; does ovsdb-server run? (agent.database)")
            poller = ovs.poller.Poller()
            database.wait(poller)
            poller.timer_wait(100)
            poller.block()
        count = len(database.ours())
        database.ensure({}, database.dpids())
        return count
    finally:
        database.close()

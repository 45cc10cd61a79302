"""Alarms for changes that switches refuse: a full table, or what a switch can't do."""

from __future__ import annotations

from collections.abc import Iterable

from .flows.entry import FlowEntry, Table
from .net.alarms import Alarms
from .net.topology import Dpid
from .openflow.session import Session

REMEDY_FULL = (
    "raise its limit (Open vSwitch: Flow_Table flow_limit), or have the policy name fewer hosts; what fits is in "
    "force, the rest is tried again every 30 s"
)
REMEDY_OTHER = "see that it has the tables, groups and actions of the controller's documentation"


class RefusalAlarms:
    """An alarm lasts until its switch is in step, or refuses nothing any more."""

    def __init__(self, alarms: Alarms) -> None:
        self._alarms = alarms
        self._refusing: set[Dpid] = set()  # of these there may be alarms

    def look_again(self, sessions: Iterable[Session], now: float) -> None:
        """At those switches of which there are alarms, or should be."""
        for session in sessions:
            if session.refusals or session.dpid in self._refusing:
                self.look(session, now)

    def look(self, session: Session, now: float) -> None:
        if session.refusals:
            self._refusing.add(session.dpid)
        elif session.in_step:
            self._refusing.discard(session.dpid)
        is_over = session.in_step or not session.refusals
        full = {_table(subject) for subject, refusal in session.refusals.items() if refusal.full}
        for table in (*Table, "groups"):
            key = f"full {session.dpid} {table}"
            if table in full:
                name = "the group table" if table == "groups" else f"flow table {int(table)} ({Table(table).name})"
                self._alarms.sound(key, f"switch {session.name}: {name} is full", REMEDY_FULL, now)
            elif is_over:
                self._alarms.clear(key)
        other = [refusal for refusal in session.refusals.values() if not refusal.full]
        key = f"refused {session.dpid}"
        if other:
            what = f"switch {session.name} refuses {len(other)} changes, the first with {other[0].error}"
            self._alarms.sound(key, f"{what}: {other[0].change}", REMEDY_OTHER, now)
        elif is_over:
            self._alarms.clear(key)


def _table(subject: object) -> Table | str:
    return subject.table if isinstance(subject, FlowEntry) else "groups"

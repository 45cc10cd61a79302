"""Open vSwitch's database: which bridges and ports there are, and the QoS and Queue records that are ours."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import ovs.db.idl as ovsdb
from ovs.poller import Poller

from ...net.topology import Dpid
from . import rows
from .rows import QosRecord

COMMIT_S = 10.0


def _column(kind: Any, value: Any = None, least: int = 1, most: int | str = 1) -> dict[str, Any]:  # noqa: ANN401 (JSON)
    found: dict[str, Any] = {"key": kind, "min": least, "max": most}
    if value is not None:
        found["value"] = value
    return {"type": found}


def _reference(table: str) -> dict[str, str]:
    return {"type": "uuid", "refTable": table}


_MAP = _column("string", "string", 0, "unlimited")
# The columns that are used, of ovs-vswitchd.conf.db(5).
_SCHEMA = {
    "name": "Open_vSwitch",
    "version": "8.0.0",
    "tables": {
        "Open_vSwitch": {
            "columns": {
                "bridges": _column(_reference("Bridge"), least=0, most="unlimited"),
                "cur_cfg": _column("integer"),
                "next_cfg": _column("integer"),
            },
            "isRoot": True,
            "maxRows": 1,
        },
        "Bridge": {
            "columns": {
                "name": _column("string"),
                "datapath_id": _column("string", least=0),
                "ports": _column(_reference("Port"), least=0, most="unlimited"),
            }
        },
        "Port": {
            "columns": {
                "name": _column("string"),
                "interfaces": _column(_reference("Interface"), least=1, most="unlimited"),
                "qos": _column(_reference("QoS"), least=0),
            }
        },
        "Interface": {"columns": {"name": _column("string")}},
        "QoS": {
            "columns": {
                "type": _column("string"),
                "queues": _column(
                    {"type": "integer", "minInteger": 0, "maxInteger": 0xFFFFFFFF}, _reference("Queue"), 0, "unlimited"
                ),
                "other_config": _MAP,
                "external_ids": _MAP,
            },
            "isRoot": True,
        },
        "Queue": {"columns": {"other_config": _MAP, "external_ids": _MAP}, "isRoot": True},
    },
}


class DatabaseError(OSError):
    """The database refused or did not answer; the message names the way out."""


@dataclass(frozen=True)
class PortAt:
    """A port by its switch and its interface's name."""

    dpid: Dpid
    name: str


@dataclass
class Outcome:
    """What a change of the database took, and what went wrong at which port."""

    changed: bool = False
    problems: dict[PortAt, str] = field(default_factory=dict)


class Database:
    """One connection, from one thread. `remote` is as ovs-vsctl's --db takes it."""

    def __init__(self, remote: str, bridges: Iterable[str] = ()) -> None:
        self._remote = remote
        self._bridges = frozenset(bridges)
        helper = ovsdb.SchemaHelper(schema_json=json.loads(json.dumps(_SCHEMA)))
        helper.register_all()
        self._idl = ovsdb.Idl(remote, helper, leader_only=False)

    def close(self) -> None:
        self._idl.close()

    def run(self) -> int:
        """Takes what the database says; a number that changes when something did."""
        self._idl.run()
        return self._idl.change_seqno

    def wait(self, poller: Poller) -> None:
        self._idl.wait(poller)

    @property
    def here(self) -> bool:
        """Whether the database has told its contents."""
        return self._idl.has_ever_connected() and self._root() is not None

    def dpids(self) -> tuple[Dpid, ...]:
        """The switches that this agent serves; a bridge has a datapath id once ovs-vswitchd has made it."""
        return tuple(sorted(dpid for dpid, _ in self._switches()))

    def ports(self) -> Mapping[PortAt, Any]:
        """The Port row of each interface of these switches."""
        return {
            PortAt(dpid, interface.name): port
            for dpid, bridge in self._switches()
            for port in bridge.ports
            for interface in port.interfaces
        }

    def ours(self) -> frozenset[PortAt]:
        """Ports of these switches whose QoS is ours."""
        return frozenset(at for at, port in self.ports().items() if port.qos and _is_ours(port.qos[0]))

    def ensure(
        self, desired: Mapping[PortAt, QosRecord], switches: Collection[Dpid], but: Collection[PortAt] = ()
    ) -> Outcome:
        """Makes our records what they should be, and waits until ovs-vswitchd has taken them; other ports of `switches`
        lose ours, `but` those. Raises DatabaseError.
        """
        outcome = Outcome()

        def change(txn: ovsdb.Transaction) -> bool:
            outcome.problems.clear()
            ports = self.ports()
            changed = False
            for at, record in desired.items():
                port = ports.get(at)
                if port is None:
                    outcome.problems[at] = "the switch's host has no port of this name"
                elif port.qos and not _is_ours(port.qos[0]):
                    outcome.problems[at] = (
                        "the port has QoS of somebody else, which is left as it is; "
                        f"`ovs-vsctl clear port {port.name} qos`, or leave the port out of the policy"
                    )
                else:
                    changed |= _ensure(txn, self._idl, port, record)
            for at, port in ports.items():
                idle = at.dpid in switches and at not in desired and at not in but
                if idle and port.qos and _is_ours(port.qos[0]):
                    port.qos = []
                    changed = True
            return _sweep(self._idl) or changed

        outcome.changed = self._commit(change)
        return outcome

    def _commit(self, change: Callable[[ovsdb.Transaction], bool]) -> bool:
        """Whether anything was changed."""
        end_s = time.monotonic() + COMMIT_S
        while True:
            txn = ovsdb.Transaction(self._idl)
            root = self._root()
            if root is None or not change(txn):
                txn.abort()
                return False
            root.verify("next_cfg")
            root.increment("next_cfg")
            status = self._finish(txn, end_s)
            if status is ovsdb.Transaction.SUCCESS:
                self._taken(txn.get_increment_new_value(), end_s)
                return True
            if status is not ovsdb.Transaction.TRY_AGAIN:
                raise DatabaseError(f"{self._remote}: change refused: {txn.get_error()}; look at ovsdb-server's log")
            self._next(end_s)

    def _finish(self, txn: ovsdb.Transaction, end_s: float) -> str:
        while (status := txn.commit()) is ovsdb.Transaction.INCOMPLETE:
            self._until(end_s, txn.wait)
            self._idl.run()
        return status

    def _next(self, end_s: float) -> None:
        """Waits for what another program changed in between."""
        seqno = self._idl.change_seqno
        while self.run() == seqno:
            self._until(end_s)

    def _taken(self, number: int, end_s: float) -> None:
        """Waits until ovs-vswitchd has done what the database says."""
        while (root := self._root()) is not None and root.cur_cfg < number:
            self._until(end_s, doing="ovs-vswitchd has not taken the change; is it running?")
            self._idl.run()

    def _until(
        self, end_s: float, also: Callable[[Poller], None] | None = None, doing: str = "no answer; is it running?"
    ) -> None:
        left_s = end_s - time.monotonic()
        if left_s <= 0:
            raise DatabaseError(f"{self._remote}: {doing}")
        poller = Poller()
        self._idl.wait(poller)
        if also is not None:
            also(poller)
        poller.timer_wait(int(1000 * left_s) + 1)
        poller.block()

    def _root(self) -> Any:  # noqa: ANN401 (a row of ovs, which has no types)
        return next(iter(self._idl.tables["Open_vSwitch"].rows.values()), None)

    def _switches(self) -> list[tuple[Dpid, Any]]:
        found = []
        for bridge in self._idl.tables["Bridge"].rows.values():
            if bridge.datapath_id and (not self._bridges or bridge.name in self._bridges):
                found.append((Dpid(int(bridge.datapath_id[0], 16)), bridge))
        return found


def _is_ours(row: Any) -> bool:  # noqa: ANN401
    return rows.OURS in _map(row, "external_ids")


def _map(row: Any, column: str) -> dict[Any, Any]:  # noqa: ANN401
    """A column that is a map; a row that is still to be inserted has none."""
    return dict(getattr(row, column, {}))


def _ensure(txn: ovsdb.Transaction, idl: ovsdb.Idl, port: Any, record: QosRecord) -> bool:  # noqa: ANN401
    """Makes a port's QoS what the record says; whether that changed anything."""
    changed = False
    if port.qos:
        qos = port.qos[0]
    else:
        qos = txn.insert(idl.tables["QoS"])
        qos.type = rows.TYPE
        qos.external_ids = {rows.OURS: port.name}
        port.qos = [qos]
        changed = True
    if _map(qos, "other_config") != dict(record.other_config):
        qos.other_config = dict(record.other_config)
        changed = True
    present = _map(qos, "queues")
    kept = {}
    for number, queue in record.queues.items():
        row = present.get(number)
        # A queue that somebody else put into our QoS is not changed but replaced.
        if row is None or not _is_ours(row):
            row = txn.insert(idl.tables["Queue"])
        if _map(row, "other_config") != dict(queue.other_config):
            row.other_config = dict(queue.other_config)
            changed = True
        if _map(row, "external_ids") != dict(queue.external_ids):
            row.external_ids = dict(queue.external_ids)
            changed = True
        kept[number] = row
    if {number: row.uuid for number, row in present.items()} != {number: row.uuid for number, row in kept.items()}:
        qos.queues = kept
        changed = True
    return changed


def _sweep(idl: ovsdb.Idl) -> bool:
    """Deletes our records that no port uses: of ports that are gone, too. Whether there were any."""
    used: set[uuid.UUID] = {qos.uuid for port in idl.tables["Port"].rows.values() for qos in port.qos}
    idle = [qos for qos in list(idl.tables["QoS"].rows.values()) if _is_ours(qos) and qos.uuid not in used]
    for qos in idle:
        qos.delete()
    held = {queue.uuid for qos in idl.tables["QoS"].rows.values() for queue in _map(qos, "queues").values()}
    loose = [queue for queue in list(idl.tables["Queue"].rows.values()) if _is_ours(queue) and queue.uuid not in held]
    for queue in loose:
        queue.delete()
    return bool(idle or loose)

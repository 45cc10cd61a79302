"""The categories of *Hadoop Acceleration in an OpenFlow-based Cluster* (section II), by Hadoop's ports and roles.

A rule is of one direction. What goes to and from a DataNode's data port is told apart by who speaks with it and which
way the packets go: blocks travel toward the port in a write and from it in a read, so a packet toward it counts as
written and one from it as read, the few bytes of acknowledgements included. Programs on one host share its address:
where a host is a DataNode and a NodeManager, what it sends to another DataNode's port counts as replication (HDFS puts
a task's first replica on the task's own DataNode, so the wire carries the pipeline's next hops), and what it receives
from one as a split. Marks of `trunkline.dscp` tell these apart where hosts that set them are trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from .model import Category, Role, Rule

# Defaults of Hadoop 3.5.0: hdfs-default.xml, yarn-default.xml, mapred-default.xml, HdfsClientConfigKeys. What has no
# default there (yarn.nodemanager.address, trunkline.datanode.address) has the port that this project's docs use.
SERVICES: Mapping[str, tuple[int, ...]] = {
    "datanode-data": (9866, 9868),
    "datanode-http": (9864, 9865),
    "datanode-ipc": (9867,),
    "namenode": (8020, 9870, 9871),
    "journalnode": (8480, 8481, 8485),
    "resourcemanager": (8030, 8031, 8032, 8033, 8088, 8090),
    "nodemanager": (8040, 8041, 8042, 8044, 8048),
    "historyserver": (10020, 10033, 19888, 19890),
    "shuffle": (13562,),
}

# Defaults of trunkline.dscp.*; the shuffle's sockets are not the plug-in's.
MARKS: Mapping[Category, int] = {
    Category.CLIENT_WRITE: 18,
    Category.CLIENT_READ: 26,
    Category.REPLICATION: 8,
    Category.SPLIT: 28,
    Category.RESULT: 20,
    Category.NAMENODE: 24,
    Category.RESOURCEMANAGER: 16,
}


@dataclass(frozen=True)
class _Known:
    """Which roles have hosts; a rule is not bound to a role that nobody has."""

    roles: frozenset[Role]
    services: Mapping[str, tuple[int, ...]]

    def at(self, role: Role | None) -> Role | None:
        return role if role in self.roles else None

    def has(self, *roles: Role) -> bool:
        return self.roles.issuperset(roles)

    def calls(self, category: Category, service: str, server: Role | None) -> Iterator[Rule]:
        """Both directions of connections to a service, whoever calls."""
        for port in self.services[service]:
            yield Rule(category, "tcp", destination_port=port, destination_role=self.at(server))
            yield Rule(category, "tcp", source_port=port, source_role=self.at(server))

    def toward(self, category: Category, service: str, caller: Role | None) -> Iterator[Rule]:
        """What callers send to a DataNode's service."""
        server = self.at(Role.DATANODE)
        for port in self.services[service]:
            yield Rule(category, "tcp", self.at(caller), server, destination_port=port)

    def back(self, category: Category, service: str, caller: Role | None) -> Iterator[Rule]:
        """What a DataNode's service sends to callers."""
        server = self.at(Role.DATANODE)
        for port in self.services[service]:
            yield Rule(category, "tcp", server, self.at(caller), source_port=port)


def rules(roles: Iterable[Role], services: Mapping[str, tuple[int, ...]], but: Iterable[str] = ()) -> tuple[Rule, ...]:
    """The rules in their order, for a cluster where some host has each of `roles`; none of the categories `but`."""
    known = _Known(frozenset(roles), services)
    left_out = set(but)
    return tuple(rule for rule in _all(known) if rule.category not in left_out)


def _all(known: _Known) -> Iterator[Rule]:
    yield from known.calls(Category.SHUFFLE, "shuffle", Role.NODEMANAGER)
    yield from known.calls(Category.NAMENODE, "namenode", Role.NAMENODE)
    yield from known.calls(Category.NAMENODE, "datanode-ipc", Role.DATANODE)
    yield from known.calls(Category.NAMENODE, "journalnode", None)
    yield from known.calls(Category.RESOURCEMANAGER, "resourcemanager", Role.RESOURCEMANAGER)
    yield from known.calls(Category.RESOURCEMANAGER, "nodemanager", Role.NODEMANAGER)
    yield from known.calls(Category.RESOURCEMANAGER, "historyserver", None)
    if known.has(Role.NODEMANAGER):
        yield from known.back(Category.SPLIT, "datanode-data", Role.NODEMANAGER)
    if known.has(Role.DATANODE):
        yield from known.toward(Category.REPLICATION, "datanode-data", Role.DATANODE)
        yield from known.back(Category.REPLICATION, "datanode-data", Role.DATANODE)
    if known.has(Role.NODEMANAGER):
        yield from known.toward(Category.RESULT, "datanode-data", Role.NODEMANAGER)
    for service in ("datanode-data", "datanode-http"):
        yield from known.toward(Category.CLIENT_WRITE, service, Role.CLIENT)
        yield from known.back(Category.CLIENT_READ, service, Role.CLIENT)


# Without hosts of these roles, nothing is ever of these categories.
NEEDS: Mapping[Category, Role] = {
    Category.REPLICATION: Role.DATANODE,
    Category.SPLIT: Role.NODEMANAGER,
    Category.RESULT: Role.NODEMANAGER,
}

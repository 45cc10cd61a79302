"""What a category of the user's own matches, as rules of one direction each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product

from .findings import Findings
from .model import Role, Rule
from .tree import Node
from .values import code_point, ports

KEYS = (
    "protocol",
    "port",
    "source",
    "source-port",
    "source-role",
    "destination",
    "destination-port",
    "destination-role",
    "dscp",
    "replies",
)
MAX_RULES = 5_000

Hosts = Callable[[Node, str], tuple[str, ...]]  # reads a list of hosts as prefixes


def rules(category: str, node: Node, hosts: Hosts, roles: Mapping[Role, object], findings: Findings) -> Iterator[Rule]:
    """The rules of one item of `match`."""
    what = f"match of category {category}"
    if node.pairs is None:
        findings.wrong(node, f"{what} is {node.kind()}", "write items such as { protocol: tcp, port: 5001 }")
        return
    if not node.pairs:
        findings.wrong(node, f"{what} matches every packet", "name the category's queue as default, or of other")
        return
    fields = findings.fields(node, what, KEYS)
    before = len(findings.problems)
    replies = _replies(fields, what, findings)
    protocols = _protocols(fields, what, findings)
    source = hosts(fields["source"], what) if "source" in fields else (None,)
    destination = hosts(fields["destination"], what) if "destination" in fields else (None,)
    source_ports = _ports(fields.get("source-port"), what, findings)
    destination_ports = _ports(fields.get("destination-port", fields.get("port")), what, findings)
    source_role = _role(fields.get("source-role"), what, roles, findings)
    destination_role = _role(fields.get("destination-role"), what, roles, findings)
    marks = _marks(fields.get("dscp"), what, findings)
    if len(findings.problems) > before:
        return
    sizes = (protocols, source, destination, source_ports, destination_ports, marks)
    count = 1 + replies
    for size in sizes:
        count *= len(size)
    if count > MAX_RULES:
        remedy = "use prefixes for hosts, fewer ports, or roles"
        findings.wrong(node, f"{what} needs {count} rules, more than {MAX_RULES}", remedy)
        return
    for protocol, one, other, source_port, destination_port, mark in product(*sizes):
        if one is not None and other is not None and (":" in one) != (":" in other):
            continue  # IPv4 does not speak with IPv6
        rule = Rule(category, protocol, source_role, destination_role, one, other, source_port, destination_port, mark)
        yield rule
        if replies and (back := reply(rule)) != rule:
            yield back


def reply(rule: Rule) -> Rule:
    """The same connections' other direction."""
    return replace(
        rule,
        source_role=rule.destination_role,
        destination_role=rule.source_role,
        source=rule.destination,
        destination=rule.source,
        source_port=rule.destination_port,
        destination_port=rule.source_port,
    )


def _replies(fields: Mapping[str, Node], what: str, findings: Findings) -> bool:
    node = fields.get("replies")
    if node is None:
        return True
    return findings.one_of(node, f"replies of {what}", ("true", "false")) != "false"


def _protocols(fields: Mapping[str, Node], what: str, findings: Findings) -> tuple[str | None, ...]:
    if "port" in fields and ("destination-port" in fields or "source-port" in fields):
        remedy = "port is short for destination-port; keep the longer words"
        findings.wrong(fields["port"], f"{what} has port beside source-port or destination-port", remedy)
    if (node := fields.get("protocol")) is not None:
        known = ("tcp", "udp")
        return tuple(findings.one_of(item, f"protocol of {what}", known) for item in findings.items(node)) or (None,)
    return ("tcp", "udp") if {"port", "source-port", "destination-port"} & fields.keys() else (None,)


def _ports(node: Node | None, what: str, findings: Findings) -> tuple[int | None, ...]:
    if node is None:
        return (None,)
    ranges = [findings.scalar(item, f"a port of {what}", ports) for item in findings.items(node)]
    found = {port for some in ranges if some is not None for port in some}
    if not ranges:
        findings.wrong(node, f"{what} has an empty list of ports", "name a port, or leave the key out")
    return tuple(sorted(found)) or (None,)


def _marks(node: Node | None, what: str, findings: Findings) -> tuple[int | None, ...]:
    if node is None:
        return (None,)
    found = [findings.scalar(item, f"dscp of {what}", code_point) for item in findings.items(node)]
    if not found:
        findings.wrong(node, f"{what} has an empty list of code points", "name one, or leave the key out")
    return tuple(sorted({mark for mark in found if mark is not None})) or (None,)


def _role(node: Node | None, what: str, roles: Mapping[Role, object], findings: Findings) -> Role | None:
    if node is None:
        return None
    word = findings.one_of(node, f"a role of {what}", [str(role) for role in Role])
    if word is None:
        return None
    if Role(word) not in roles:
        findings.wrong(
            node, f"{what} is by role {word}, which no host has", f"name its hosts: roles: {{ {word}: […] }}"
        )
    return Role(word)

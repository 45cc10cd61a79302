"""A policy file: YAML in, a checked Policy or all that is wrong with it out. Its keys are described in docs/qos.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from types import MappingProxyType

from . import categories, classify, hosts, marks, matching, ports, values
from .findings import Findings, nearest
from .model import MAX_NUMBER, Category, Policy, PolicyError, Queue, Role, Rule
from .shadow import shadowed
from .tree import Node, read, shown

KEYS = ("name", "queues", "default", "ports", "roles", "services", "marks", "categories", "limits")
MAX_QUEUES = 64  # code points
MAX_CATEGORIES = 256
MAX_SERVICE_PORTS = 64
DEFAULT_ENTRIES = 10_000
MAX_ENTRIES = 100_000

_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")


def parse(data: str | bytes, file: str = "policy.yaml", resolve: hosts.Resolve = hosts.resolve) -> Policy:
    """The policy that a file's text gives; raises PolicyError with everything that is wrong.

    `resolve` is asked once, for all host names in the file.
    """
    root = read(data, file)
    policy = _File(Findings(file), root, resolve).policy()
    return replace(policy, text=data if isinstance(data, str) else data.decode())


@dataclass
class _File:
    findings: Findings
    root: Node
    resolve: hosts.Resolve
    addresses: Mapping[str, tuple[str, ...] | str] = field(default_factory=dict)
    roles: dict[Role, tuple[str, ...]] = field(default_factory=dict)

    def policy(self) -> Policy:
        if self.root.pairs is None:
            self.findings.wrong(self.root, f"the policy is {self.root.kind()}", "write keys such as queues and default")
            raise PolicyError(tuple(self.findings.problems))
        sections = self.findings.fields(self.root, "the policy", KEYS)
        self.addresses = self._resolve(sections)
        queues = self._queues(sections.get("queues"))
        default = self._default(sections.get("default"), queues)
        classes = ports.read(sections.get("ports"), queues, self.findings)
        self.roles = self._roles(sections.get("roles"))
        services = self._services(sections.get("services"))
        queue_of, matches = self._categories(sections.get("categories"), queues, default)
        believed = marks.read(sections.get("marks"), queue_of, self._trusted, self.findings)
        written = (placed for category, nodes in matches.items() for placed in self._match(category, nodes))
        own = list(islice(written, matching.MAX_RULES + 1))  # more are refused below
        built_in = categories.rules(self.roles, services, but=matches)
        ordered = marks.with_marks(
            [*believed.rules, *own], queue_of=queue_of, queues=queues, default=default, findings=self.findings
        )
        at = sections.get("categories", self.root)
        ordered += [(rule, at) for rule in built_in]
        policy = Policy(
            name=self._name(sections.get("name")),
            queues=MappingProxyType(queues),
            port_classes=MappingProxyType(classes),
            categories=MappingProxyType(queue_of),
            rules=tuple(rule for rule, _ in ordered),
            roles=MappingProxyType(self.roles),
            default_queue=default,
            trusted=believed.trusted,
            max_entries=self._entries(sections.get("limits")),
            lines=MappingProxyType(_lines(self.root)),
        )
        self._size(policy, sections.get("limits", self.root))
        if self.findings.problems:
            raise PolicyError(tuple(sorted(self.findings.problems, key=lambda problem: problem.line)))
        self._shadowed(ordered)
        self._never(sections.get("categories"), matches)
        self._without_rules(policy)
        return replace(policy, warnings=tuple(self.findings.warnings))

    def _name(self, node: Node | None) -> str:
        if node is None:
            return re.sub(r"\.ya?ml\Z", "", self.findings.file.rpartition("/")[2]) or "policy"

        def read(text: str) -> str:
            if not 1 <= len(text) <= 100 or not text.isprintable():
                raise ValueError("write at most 100 characters")
            return text

        return self.findings.scalar(node, "name", read) or ""

    def _queues(self, node: Node | None) -> dict[str, Queue]:
        if node is None:
            self.findings.wrong(self.root, "there are no queues", "write queues: { q0: { number: 0, dscp: 0 }, … }")
        found: dict[str, Queue] = {}
        given = self.findings.named(node, "queues", "q0: { number: 0, dscp: 0 }")
        if node is not None and len(given) > MAX_QUEUES:
            self.findings.wrong(node, f"there are {len(given)} queues", f"{MAX_QUEUES} is the most")
        for name, key, value in given[:MAX_QUEUES]:
            what = f"queue {shown(name)}"
            if not _WORD.fullmatch(name):
                self.findings.wrong(key, f"{what} is no name", "use letters, digits, '.', '_' and '-', 63 at most")
                continue
            fields = self.findings.fields(value, what, ("number", "dscp", "priority"))
            for needed in ("number", "dscp"):
                if value.pairs is not None and needed not in fields:
                    self.findings.wrong(key, f"{what} has no {needed}", f"write {name}: {{ number: 0, dscp: 0 }}")
            queue = self._queue(name, what, fields)
            for other in found.values():
                if queue.number == other.number and queue.number >= 0:
                    twice = f"{what} has number {queue.number}, as {other.name} has"
                    self.findings.wrong(fields["number"], twice, "give each queue a number of its own")
                if queue.dscp == other.dscp and queue.dscp >= 0:
                    twice = f"{what} has dscp {queue.dscp}, as {other.name} has"
                    self.findings.wrong(fields["dscp"], twice, "give each queue a code point of its own")
            found[name] = queue
        if node is not None and not found:
            self.findings.wrong(node, "there are no queues", "write queues: { q0: { number: 0, dscp: 0 }, … }")
        return found

    def _queue(self, name: str, what: str, fields: Mapping[str, Node]) -> Queue:
        """-1 stands for what is missing or wrong, and is a problem already."""
        number, dscp, priority = -1, -1, 4
        if (node := fields.get("number")) is not None:
            read = self.findings.scalar(node, f"number of {what}", lambda text: values.number(text, 0, MAX_NUMBER))
            number = -1 if read is None else read
        if (node := fields.get("dscp")) is not None:
            read = self.findings.scalar(node, f"dscp of {what}", values.code_point)
            dscp = -1 if read is None else read
        if (node := fields.get("priority")) is not None:
            read = self.findings.scalar(node, f"priority of {what}", lambda text: values.number(text, 0, 7))
            priority = 4 if read is None else read
        return Queue(name, number, dscp, priority)

    def _default(self, node: Node | None, queues: Mapping[str, Queue]) -> str:
        if node is None:
            remedy = f"write default: {next(iter(queues), 'q0')}, the queue of all that no category puts elsewhere"
            self.findings.wrong(self.root, "there is no default queue", remedy)
            return ""
        return self.findings.one_of(node, "the default queue", queues) or ""

    def _resolve(self, sections: Mapping[str, Node]) -> Mapping[str, tuple[str, ...] | str]:
        """Addresses of all host names in the file."""
        names = set()
        for node in _host_nodes(sections):
            if node.text and node.text not in set(Role):
                try:
                    if hosts.network(node.text) is None:
                        names.add(node.text)
                except ValueError:
                    continue  # said where it is read
        return self.resolve(frozenset(names)) if names else {}

    def _hosts(self, node: Node, what: str) -> tuple[str, ...]:
        """A list of addresses, prefixes and names as the fewest prefixes."""
        nets: list[hosts.Net] = []
        items = self.findings.items(node)
        if not items:
            self.findings.wrong(node, f"{what} has an empty list of hosts", "name a host, or leave the key out")
        for item in items:
            net = self.findings.scalar(item, f"a host of {what}", lambda text: (hosts.network(text),))
            if net is None:
                continue
            if net[0] is not None:
                nets.append(net[0])
                continue
            found = self.addresses.get(item.text or "", "not resolved")
            if isinstance(found, str):
                cause = f"host name {shown(item.text or '')} of {what} can't be resolved: {found}"
                self.findings.wrong(item, cause, "mend the name or its DNS entry, or write its address")
                continue
            nets += [net for address in found if (net := hosts.network(address)) is not None]
        return hosts.merged(nets)

    def _trusted(self, node: Node) -> tuple[str, ...]:
        """Hosts and roles whose marks are believed."""
        nets: list[hosts.Net] = []
        others = []
        for item in self.findings.items(node):
            if item.text in set(Role) and item.is_scalar:
                if Role(item.text) not in self.roles:
                    remedy = f"name its hosts: roles: {{ {item.text}: […] }}"
                    self.findings.wrong(item, f"marks trust role {item.text}, which no host has", remedy)
                nets += [net for text in self.roles.get(Role(item.text), ()) if (net := hosts.network(text))]
            else:
                others.append(item)
        named = self._hosts(Node(node.line, items=tuple(others)), "marks") if others or not nets else ()
        return hosts.merged([*nets, *(net for text in named if (net := hosts.network(text)))])

    def _roles(self, node: Node | None) -> dict[Role, tuple[str, ...]]:
        found = {}
        for name, key, value in self.findings.named(node, "roles", "datanode: [10.0.0.0/24]"):
            if self.findings.one_of(key, "a role", [str(role) for role in Role]) is None:
                continue
            found[Role(name)] = self._hosts(value, f"role {name}")
        return found

    def _services(self, node: Node | None) -> dict[str, tuple[int, ...]]:
        found = dict(categories.SERVICES)
        for name, key, value in self.findings.named(node, "services", "shuffle: 13562"):
            if self.findings.one_of(key, "a service", categories.SERVICES) is None:
                continue
            items = self.findings.items(value)
            ranges = [
                self.findings.scalar(item, f"a port of service {name}", values.ports)
                for item in items[:MAX_SERVICE_PORTS]
            ]
            ports = {port for some in ranges if some is not None for port in some}
            if len(items) > MAX_SERVICE_PORTS or len(ports) > MAX_SERVICE_PORTS:
                count = max(len(items), len(ports))
                self.findings.wrong(value, f"service {name} has {count} ports", f"{MAX_SERVICE_PORTS} is the most")
                continue
            found[name] = tuple(sorted(ports))
        if node is not None:
            owner: dict[int, str] = {}
            for name, numbers in sorted(found.items()):
                for port in numbers:
                    if (other := owner.setdefault(port, name)) != name:
                        what = f"port {port} is of service {name} and of {other}"
                        self.findings.wrong(node, what, "give each service ports of its own")
        return found

    def _categories(
        self, node: Node | None, queues: Mapping[str, Queue], default: str
    ) -> tuple[dict[str, str], dict[str, tuple[Node, ...]]]:
        """Each category's queue, and what the file says that those match which it defines."""
        queue_of: dict[str, str] = dict.fromkeys(map(str, Category), default)
        matches: dict[str, tuple[Node, ...]] = {}
        for name, key, value in self.findings.named(node, "categories", "shuffle: q1"):
            what = f"category {shown(name)}"
            if not _WORD.fullmatch(name):
                self.findings.wrong(key, f"{what} is no name", "use letters, digits, '.', '_' and '-', 63 at most")
                continue
            queue = value
            if value.pairs is not None:
                fields = self.findings.fields(value, what, ("queue", "match"))
                if "match" in fields:
                    matches[name] = self.findings.items(fields["match"])
                if "queue" not in fields:
                    self.findings.wrong(key, f"{what} has no queue", f"write queue: {next(iter(queues), 'q0')}")
                    continue
                queue = fields["queue"]
            if name == Category.OTHER and name in matches:
                self.findings.wrong(key, f"{what} has match", "it is all that no rule takes; leave match out")
            if name not in set(Category) and not matches.get(name):
                remedy = f"{nearest(name, map(str, Category))} One of your own needs queue and match"
                self.findings.wrong(key, f"there is no category {shown(name)} of Hadoop's", remedy)
            queue_of[name] = self.findings.one_of(queue, f"queue of {what}", queues) or default
        if node is not None and len(queue_of) > MAX_CATEGORIES:
            self.findings.wrong(node, f"there are {len(queue_of)} categories", f"{MAX_CATEGORIES} is the most")
        return queue_of, matches

    def _match(self, category: str, nodes: tuple[Node, ...]) -> Iterator[tuple[Rule, Node]]:
        for node in nodes:
            for rule in matching.rules(category, node, self._hosts, self.roles, self.findings):
                yield rule, node

    def _entries(self, node: Node | None) -> int:
        if node is None:
            return DEFAULT_ENTRIES
        fields = self.findings.fields(node, "limits", ("entries",))
        if "entries" not in fields:
            return DEFAULT_ENTRIES
        limit = self.findings.scalar(
            fields["entries"], "entries of limits", lambda text: values.number(text, 1, MAX_ENTRIES)
        )
        return limit or DEFAULT_ENTRIES

    def _size(self, policy: Policy, at: Node) -> None:
        if len(policy.rules) > matching.MAX_RULES:
            what = f"the categories need more than {matching.MAX_RULES} rules"
            self.findings.wrong(at, what, "use prefixes for hosts, fewer ports, or roles")
        elif not self.findings.problems and (count := len(classify.entries(policy))) > policy.max_entries:
            what = f"the policy needs {count} flow entries on each switch, more than {policy.max_entries}"
            self.findings.wrong(at, what, "use prefixes for hosts, fewer ports, or raise entries of limits")

    def _shadowed(self, ordered: list[tuple[Rule, Node]]) -> None:
        """Warns of what the file asks for and can't get; built-in rules may overlap each other."""
        said = set()
        for later, earlier in shadowed(rule for rule, _ in ordered).items():
            rule, at = ordered[later]
            by, by_at = ordered[earlier]
            if rule.category == by.category or at is by_at or (at.line, rule.category) in said:
                continue
            said.add((at.line, rule.category))
            what = f"some of category {rule.category} never matches: {by.category} at line {by_at.line} takes it first"
            self.findings.warn(at, what, "put the narrower category first, or narrow the other")

    def _without_rules(self, policy: Policy) -> None:
        """Warns of categories of Hadoop's that the file leaves no rule: an empty match, or services without ports."""
        told = {rule.category for rule in policy.rules}
        for name in Category:
            needs = categories.NEEDS.get(name)
            if name in told or name == Category.OTHER or (needs is not None and needs not in self.roles):
                continue
            line = policy.line(f"categories.{name}", "services")
            what = f"nothing is of category {name}: it has no rule"
            remedy = "give it a match with items, or leave match out and its services their ports"
            self.findings.warn(Node(line), what, remedy)

    def _never(self, node: Node | None, matches: Mapping[str, object]) -> None:
        for name, key, _ in self.findings.named(node, "categories", ""):
            role = categories.NEEDS.get(Category(name)) if name in set(Category) and name not in matches else None
            if role is not None and role not in self.roles:
                what = f"nothing is of category {name}: no host has role {role}"
                self.findings.warn(key, what, f"name them: roles: {{ {role}: […] }}")


def _lines(root: Node) -> dict[str, int]:
    """Of each section, and of each of its keys."""
    found: dict[str, int] = {}
    for key, value in root.pairs or ():
        found.setdefault(key.text or "", key.line)
        for inner, _ in value.pairs or ():
            found.setdefault(f"{key.text}.{inner.text}", inner.line)
    return found


def _host_nodes(sections: Mapping[str, Node]) -> Iterator[Node]:
    """All scalars that may be host names."""
    for _, value in _pairs(sections.get("roles")):
        yield from _scalars(value)
    for key, value in _pairs(sections.get("marks")):
        if key == "trust":
            yield from _scalars(value)
    for _, category in _pairs(sections.get("categories")):
        for key, match in _pairs(category):
            if key == "match":
                for item in match.items or (match,):
                    for end, value in _pairs(item):
                        if end in ("source", "destination"):
                            yield from _scalars(value)


def _pairs(node: Node | None) -> Iterator[tuple[str, Node]]:
    for key, value in (node.pairs or ()) if node is not None else ():
        yield key.text or "", value


def _scalars(node: Node) -> Iterator[Node]:
    for item in node.items if node.items is not None else (node,):
        if item.is_scalar:
            yield item

"""Marks that hosts set themselves, and how rules by them stay true at the next switch.

Hosts mark by `trunkline.dscp`, or run programs that do. Where DSCP tells the queues apart, a switch writes its queue's
own mark over the host's: so each rule by mark has a twin, by the mark of the queue that it leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from .categories import MARKS
from .findings import Findings
from .model import Queue, Rule
from .tree import Node, shown
from .values import code_point

Placed = tuple[Rule, Node]  # a rule, and where the file asks for it


@dataclass
class Believed:
    """Hosts whose marks are believed, and what each category's mark is."""

    trusted: tuple[str, ...] = ()
    rules: list[Placed] = field(default_factory=list)


def read(
    node: Node | None, queue_of: Mapping[str, str], hosts: Callable[[Node], tuple[str, ...]], findings: Findings
) -> Believed:
    """The `marks` of a policy file."""
    if node is None:
        return Believed()
    fields = findings.fields(node, "marks", ("trust", "categories"))
    if "trust" not in fields:
        findings.wrong(node, "marks trust nobody", "write trust: [datanode], or leave marks out")
        return Believed()
    found: dict[str, tuple[int, Node]] = {str(category): (mark, node) for category, mark in MARKS.items()}
    for name, key, value in findings.named(fields.get("categories"), "categories of marks", "client-read: af31"):
        if findings.one_of(key, "a category of marks", queue_of) is None:
            continue
        mark = findings.scalar(value, f"mark of category {shown(name)}", code_point)
        if mark is not None:
            found[name] = (mark, key)
    owner: dict[int, str] = {}
    for category, (mark, at) in found.items():
        other = owner.setdefault(mark, category)
        if queue_of.get(other) != queue_of.get(category):
            what = f"mark {mark} is of category {category} and of {other}, which have different queues"
            findings.wrong(at, what, "give each a mark of its own")
    rules = [(Rule(category, dscp=mark, trusted=True), at) for category, (mark, at) in found.items()]
    return Believed(hosts(fields["trust"]), rules)


def with_marks(
    placed: Iterable[Placed],
    *,
    queue_of: Mapping[str, str],
    queues: Mapping[str, Queue],
    default: str,
    findings: Findings,
) -> list[Placed]:
    """The rules, each by mark followed by its twin."""
    by_mark = {queue.dscp: queue for queue in queues.values()}
    free = next((mark for mark in range(3, 64, 4) if mark not in by_mark), 0)  # code points of local use (RFC 2474)
    ordered: list[Placed] = []
    said = set()
    for rule, at in placed:
        ordered.append((rule, at))
        queue = queues.get(queue_of.get(rule.category, ""))
        if rule.dscp is None or queue is None:
            continue
        other = by_mark.get(rule.dscp, queue)
        if other is not queue and (rule.dscp, rule.category) not in said:
            said.add((rule.dscp, rule.category))
            what = f"mark {rule.dscp} of category {rule.category} (queue {queue.name}) is queue {other.name}'s own"
            findings.wrong(at, what, f"give queue {other.name} another dscp, such as {free}")
        if queue.dscp == 0 and queue.name != default and queue.name not in said:
            said.add(queue.name)
            what = (
                f"category {rule.category} is by mark, and its queue {queue.name} has dscp 0, as unmarked packets have"
            )
            findings.wrong(at, what, f"give queue {queue.name} another dscp, such as {free}")
        if queue.dscp not in (0, rule.dscp):
            ordered.append((replace(rule, dscp=queue.dscp), at))
    return ordered

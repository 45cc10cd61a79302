"""A policy as flow entries of the tables between ADMIT and FORWARD: the same on each switch, and without state.

Each rule has a priority of its own, higher the earlier it stands and counted from the last, so that a category more at
the front leaves the others' entries as they are. Each lift stands just above the rule whose packets it lifts, so that
it takes none that an earlier rule would have.
"""

from __future__ import annotations

import ipaddress
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from dataclasses import replace

from ..flows.entry import COOKIE, COOKIE_MASK, Action, FlowEntry, Match, Owner, SetField, SetQueue, Table, cookie
from . import roles
from .hosts import Net
from .model import Category, Lift, Policy, Queue, Rule

LAST = 10  # priority of the last rule; each before it is two higher
OTHER = 1
REST = 0

_ETH_TYPES = {4: 0x0800, 6: 0x86DD}
_PROTOCOLS = {"tcp": 6, "udp": 17}


def entries(policy: Policy | None, lifts: Iterable[Lift] = ()) -> frozenset[FlowEntry]:
    """All of ours in SOURCE_ROLES, DESTINATION_ROLES and CLASSIFY. Without a policy packets only pass through.

    Each has OpenFlow's action and writes the queue's mark, as a port may heed either. Raises KeyError where a lift
    names a category or queue that the policy has not.
    """
    if policy is None:
        return frozenset((*_through(), FlowEntry(Table.CLASSIFY, REST, Match(), goto=Table.FORWARD, cookie=_REST)))
    lifted: dict[str, list[tuple[str, Queue]]] = defaultdict(list)
    for category, host, queue in sorted({(lift.category, lift.host, lift.queue) for lift in lifts}):
        if category not in policy.categories:
            raise KeyError(category)
        lifted[category].append((host, policy.queues[queue]))
    found = {*_through(), *_misses(policy), *roles.entries(policy, policy.rules)}
    numbers = {category: number for number, category in enumerate(policy.categories, 1)}
    for position, rule in enumerate(policy.rules):
        priority, number = LAST + 2 * (len(policy.rules) - 1 - position), numbers[rule.category]
        versions = roles.versions(policy, rule)
        does = _actions(policy, policy.queues[policy.categories[rule.category]], rule)
        found.update(_entry(priority, match, does, cookie(Owner.POLICY, number)) for match in matches(rule, versions))
        above: dict[Match, FlowEntry] = {}
        for host, queue in lifted.get(rule.category, ()):
            for match in (match for narrow in _opened_by(rule, host) for match in matches(narrow, versions)):
                above.setdefault(
                    match, _entry(priority + 1, match, _actions(policy, queue), cookie(Owner.LIFT, number))
                )
        found.update(above.values())
    return frozenset(found)


def may_lift(policy: Policy, category: str, host: str) -> bool:
    """Whether a lift of a host's connections is any entry at all: some rule of the category is about them."""
    return any(
        True
        for rule in policy.rules
        if rule.category == category
        for narrow in _opened_by(rule, host)
        for _ in matches(narrow, roles.versions(policy, rule))
    )


def category_number(policy: Policy, category: str) -> int:
    """A category's number in cookies: from 1, in the policy's order."""
    return list(policy.categories).index(category) + 1


def category_of(policy: Policy, entry_cookie: int) -> str:
    """The category that an entry of CLASSIFY puts packets into; empty where the cookie is of none."""
    owner, number = entry_cookie >> 32 & 0xFFFF, entry_cookie & 0xFFFFFFFF
    ours = entry_cookie & COOKIE_MASK == COOKIE and owner in (Owner.POLICY, Owner.LIFT)
    names = list(policy.categories)
    return names[number - 1] if ours and 1 <= number <= len(names) else ""


def matches(rule: Rule, versions: Container[int] = (4, 6)) -> Iterator[Match]:
    """A rule as matches, one for each version of IP that it can be about."""
    given = next((text for text in (rule.source, rule.destination) if text is not None), None)
    bits = roles.wanted(rule)
    for version, eth_type in _ETH_TYPES.items():
        if version not in versions or (given is not None and (":" in given) != (version == 6)):
            continue
        yield Match(
            eth_type=eth_type,
            ip_proto=_PROTOCOLS[rule.protocol] if rule.protocol else None,
            ip_dscp=rule.dscp,
            ip_src=_address(rule.source),
            ip_dst=_address(rule.destination),
            l4_src=rule.source_port,
            l4_dst=rule.destination_port,
            metadata=bits or None,
            metadata_mask=bits or None,
        )


def _address(text: str | None) -> str | None:
    """A prefix of length 0 takes all, as no match does."""
    return None if text is None or text.endswith("/0") else text


def _actions(policy: Policy, queue: Queue, rule: Rule | None = None) -> tuple[Action, ...]:
    """What puts packets into a queue."""
    # What a trusted host marked for the default queue keeps its mark where that queue's is 0: an unmarked packet would
    # be another category's at the next switch.
    if rule is not None and rule.dscp is not None and queue.dscp == 0 and queue.name == policy.default_queue:
        return (SetQueue(queue.number),)
    return SetQueue(queue.number), SetField("ip_dscp", queue.dscp)


def _entry(priority: int, match: Match, actions: tuple[Action, ...], of: int) -> FlowEntry:
    return FlowEntry(Table.CLASSIFY, priority, match, actions, Table.FORWARD, of)


_REST = cookie(Owner.POLICY)


def _through() -> Iterator[FlowEntry]:
    for table, after in (
        (Table.SOURCE_ROLES, Table.DESTINATION_ROLES),
        (Table.DESTINATION_ROLES, Table.CLASSIFY),
    ):
        yield FlowEntry(table, REST, Match(), goto=after, cookie=_REST)


def _misses(policy: Policy) -> Iterator[FlowEntry]:
    """What no rule takes: IP is of category other, the rest has no mark and goes into the default queue."""
    other = policy.queues[policy.categories[Category.OTHER]]
    number = category_number(policy, Category.OTHER)
    for eth_type in _ETH_TYPES.values():
        yield _entry(OTHER, Match(eth_type=eth_type), _actions(policy, other), cookie(Owner.POLICY, number))
    default = policy.queues[policy.default_queue]
    yield _entry(REST, Match(), (SetQueue(default.number),), _REST)


def _opened_by(rule: Rule, host: str) -> Iterator[Rule]:
    """A rule's packets of connections that a host opened: of a rule by one port, it is at the other end."""
    ends = ("source", "destination")
    if rule.destination_port is None and rule.source_port is not None:
        ends = ("destination",)
    elif rule.source_port is None and rule.destination_port is not None:
        ends = ("source",)
    inside = ipaddress.ip_network(host)
    for end in ends:
        around = getattr(rule, end)
        other = rule.destination if end == "source" else rule.source
        if other is not None and (":" in other) != (inside.version == 6):
            continue
        if around is None or _holds(ipaddress.ip_network(around), inside):
            yield replace(rule, **{end: host})


def _holds(around: Net, inside: Net) -> bool:
    return around.version == inside.version and inside.subnet_of(around)

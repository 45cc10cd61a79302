"""Which queue a straggler's shuffle is lifted into, and from which: told from the policy in force. Pure."""

from __future__ import annotations

import ipaddress
import math
from dataclasses import dataclass

from ..policy.model import Category, Policy, Problem, Role, Share


class NoTarget(ValueError):
    """There is nothing to lift, or no queue to lift into; `remedy` is the way out, `keys` say where in the policy."""

    def __init__(self, what: str, remedy: str, *keys: str) -> None:
        super().__init__(f"{what}; {remedy}")
        self.what, self.remedy, self.keys = what, remedy, keys


@dataclass(frozen=True)
class Target:
    """Shuffles are in `from_queue`; `to_queue` is no worse on any port, and better on one."""

    from_queue: str
    to_queue: str


def target(policy: Policy | None, wanted: str) -> Target:
    """Raises NoTarget where the policy has no such queue, or one that would do a shuffle no good.

    A lift moves packets into another queue and changes no queue: what that queue may take at most, and what all others
    have at least, stay the policy's.
    """
    if policy is None:
        raise NoTarget("no policy is in force, so there is no queue to lift a shuffle into", "apply a policy")
    if not any(rule.category == Category.SHUFFLE for rule in policy.rules):
        raise NoTarget(
            f"policy {policy.name} tells no shuffles from other traffic",
            "leave match of category shuffle out, and give service shuffle its ports",
            "categories.shuffle",
            "services",
        )
    if not policy.roles.get(Role.NODEMANAGER):
        raise NoTarget(
            f"policy {policy.name} names no NodeManager, and no other host's flows are lifted",
            f"name them: roles: {{ {Role.NODEMANAGER}: […] }}",
            "roles",
        )
    present = policy.categories.get(Category.SHUFFLE, policy.default_queue)
    for name, which in ((present, "that shuffles are in"), (wanted, "that [dynamic] queue names")):
        if name not in policy.queues:
            raise NoTarget(
                f"policy {policy.name} has no queue {name!r}, the one {which}",
                f"add it to the policy, or set [dynamic] queue to one of {', '.join(sorted(policy.queues))}",
                "queues",
            )
    if wanted == present:
        raise NoTarget(
            f"policy {policy.name} has shuffles in queue {wanted!r} already",
            "set [dynamic] queue to a better queue, or give shuffles another one",
            "categories.shuffle",
            "default",
        )
    if worse := _worse(policy, present, wanted):
        raise NoTarget(
            f"queue {wanted!r} is no better for a shuffle than {present!r}: {worse}",
            f"set [dynamic] queue to a queue that has no less anywhere, or give {wanted!r} more in the policy",
            f"queues.{wanted}",
        )
    return Target(present, wanted)


def warnings(policy: Policy, wanted: str, file: str) -> tuple[Problem, ...]:
    """What keeps dynamic control from lifting anything under a policy."""
    try:
        target(policy, wanted)
    except NoTarget as error:
        what = f"dynamic control lifts nothing: {error.what}"
        return (Problem(file, policy.line(*error.keys), what, error.remedy),)
    return ()


def _worse(policy: Policy, present: str, wanted: str) -> str:
    """Why `wanted` is no better than `present`; empty where it is."""
    was, would = policy.queues[present], policy.queues[wanted]
    if would.priority > was.priority:
        return f"its priority is {would.priority}, after {was.priority}"
    better = would.priority < was.priority
    for name, ports in policy.port_classes.items():
        had, gets = ports.shares.get(present), ports.shares.get(wanted)
        if gets is None:
            return f"ports of class {name} have no share for it"
        if had is None:
            better = True
            continue
        for what, more, less in (
            ("minimum", _least(gets), _least(had)),
            ("maximum", _most(gets), _most(had)),
        ):
            if _unlike(more, less):
                return f"on ports of class {name} one {what} is a percentage and the other is not"
            if more < less:
                return f"on ports of class {name} its {what} is lower"
            better |= more > less
    return "" if better else "it has the same everywhere"


_Bound = tuple[float, float]  # percent of the port, bits a second: one of them is 0, both where there is nothing


def _least(share: Share) -> _Bound:
    return share.min_percent or 0.0, float(share.min_bit_s)


def _most(share: Share) -> _Bound:
    """A maximum that is not given is the whole port."""
    if not share.max_bit_s and share.max_percent is None:
        return math.inf, math.inf
    return share.max_percent or 0.0, float(share.max_bit_s)


def _unlike(one: _Bound, other: _Bound) -> bool:
    """Whether one is a percentage and the other is not, so that without the port's rate neither is known the larger."""
    percents, rates = one[0] and other[1], one[1] and other[0]
    return math.inf not in (*one, *other) and bool(percents or rates)


def runs_tasks(policy: Policy, address: str) -> bool:
    """Whether the policy names the host a NodeManager: no other host's flows are lifted, whoever says what of it."""
    try:
        host = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(_within(host, named) for named in policy.roles.get(Role.NODEMANAGER, ()))


def _within(host: ipaddress.IPv4Address | ipaddress.IPv6Address, named: str) -> bool:
    try:
        return host in ipaddress.ip_network(named, strict=False)
    except ValueError:
        return False

"""Which filters put a port's packets into HTB's classes by their marks, and what to change. Pure.

Open vSwitch gives queue n class 1:(n+1), in hexadecimal. Its own set_queue goes before filters where it has effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..wanted import PortQueues

# Priorities of our filters (tc's `pref`), by protocol: nobody else's are touched. Filters of one priority share a
# protocol.
IPV4 = 29_810
IPV6 = 29_811
REST = 29_812
OURS = (IPV4, IPV6, REST)
PROTOCOLS = {IPV4: 0x0800, IPV6: 0x86DD, REST: 0x0003}

Filters = Mapping[tuple[int, int], int]  # (priority, node) to class


@dataclass(frozen=True)
class Key:
    """What u32 compares: 32 bits at the IP header's start, under a mask."""

    value: int
    mask: int


def class_of(queue: int) -> int:
    """The HTB class of a queue: 1:(queue + 1) as 32 bits."""
    return 1 << 16 | queue + 1


def wanted(port: PortQueues | None) -> dict[tuple[int, int], int]:
    """A port's filters. The node in a filter's handle is its mark plus 1: a handle says what the filter matches."""
    if port is None:
        return {}
    found = {}
    for queue in port.queues:
        if queue.number != port.default:
            for priority in (IPV4, IPV6):
                found[priority, queue.dscp + 1] = class_of(queue.number)
    if port.default != 0:
        # HTB in Open vSwitch leads what no filter takes to queue 0.
        found[REST, 1] = class_of(port.default)
    return found


def key(priority: int, node: int) -> Key:
    """What the filter at a node compares."""
    if priority == IPV4:  # version, header length, DSCP and ECN, total length
        return Key((node - 1) << 18, 0x00FC0000)
    if priority == IPV6:  # version, DSCP and ECN, flow label
        return Key((node - 1) << 22, 0x0FC00000)
    return Key(0, 0)


def changes(present: Filters, desired: Filters) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Which to delete and which to add, in this order; one that leads elsewhere is both."""
    gone = [at for at, leads in present.items() if desired.get(at) != leads]
    new = [at for at, leads in desired.items() if present.get(at) != leads]
    return sorted(gone), sorted(new)

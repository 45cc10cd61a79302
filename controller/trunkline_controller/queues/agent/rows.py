"""A port's queues as records of Open vSwitch's database (ovs-vswitchd.conf.db(5), tables QoS and Queue). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..wanted import PortQueues, QueueWanted

TYPE = "linux-htb"
OURS = "trunkline"  # key in external_ids of what is ours
BURST_S = 0.004  # of a queue's maximum: HTB's own burst of one packet keeps fast queues below their rate
LEAST_BURST_BYTES = 4_000


@dataclass(frozen=True)
class QueueRecord:
    """A Queue's other_config and external_ids."""

    other_config: tuple[tuple[str, str], ...]
    external_ids: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class QosRecord:
    """A QoS's other_config and its queues by number; its type is TYPE."""

    other_config: tuple[tuple[str, str], ...]
    queues: Mapping[int, QueueRecord]


def record(port: PortQueues) -> QosRecord:
    """What the port's QoS should be."""
    return QosRecord((("max-rate", str(port.rate_bit_s)),), {queue.number: _queue(queue) for queue in port.queues})


def _queue(queue: QueueWanted) -> QueueRecord:
    burst_bytes = max(LEAST_BURST_BYTES, int(queue.max_bit_s * BURST_S / 8))
    config = {
        "burst": str(8 * burst_bytes),
        "max-rate": str(queue.max_bit_s),
        "priority": str(queue.priority),
    }
    if queue.min_bit_s:
        config["min-rate"] = str(queue.min_bit_s)
    return QueueRecord(tuple(sorted(config.items())), ((OURS, queue.name),))

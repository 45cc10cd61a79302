"""Policy files of the controller, written for a topology's hosts: queues, what they have of each port, who is what."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from .net.topology import Topology
from .net.units import rate_text

CROSS_TRAFFIC_PORT = 5001  # iperf's own


@dataclass(frozen=True)
class Queue:
    """A queue and what it has of each port, in bits a second; `priority` 0 is served first, 7 last."""

    name: str
    number: int
    dscp: int
    priority: int
    min_bit_s: int
    max_bit_s: int


def text(
    topology: Topology,
    name: str,
    queues: tuple[Queue, ...],
    categories: Mapping[str, str],
    *,
    default: str,
    rate_bit_s: int,
) -> str:
    """A policy in YAML. Categories that are not named go into `default`; "iperf" is a category of its own."""
    shares = {queue.name: {"min": rate_text(queue.min_bit_s), "max": rate_text(queue.max_bit_s)} for queue in queues}
    port = {"rate": rate_text(rate_bit_s), "queues": shares}
    chosen: dict[str, object] = {category: queue for category, queue in categories.items() if category != "iperf"}
    if iperf := categories.get("iperf"):
        match = [{"protocol": protocol, "port": CROSS_TRAFFIC_PORT} for protocol in ("tcp", "udp")]
        chosen["iperf"] = {"queue": iperf, "match": match}
    chosen.setdefault("other", default)
    document = {
        "name": name,
        "queues": {q.name: {"number": q.number, "dscp": q.dscp, "priority": q.priority} for q in queues},
        "default": default,
        "ports": {"hosts": port, "switches": port},
        "roles": roles(topology),
        "categories": chosen,
    }
    return json.dumps(document, indent=2) + "\n"  # JSON is YAML


def roles(topology: Topology) -> dict[str, list[str]]:
    """Addresses of the hosts by what they do."""
    had = topology.roles
    named = {
        "namenode": (had.namenode,),
        "resourcemanager": (had.resourcemanager,),
        "datanode": had.datanodes,
        "nodemanager": had.nodemanagers,
    }
    return {role: [topology.address(host) for host in hosts if host] for role, hosts in named.items() if any(hosts)}

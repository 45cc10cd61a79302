"""Hosts' TCP as long pipes want it, and uplinks slower than downlinks; what stock TCP is compared with has it alike."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from . import kernel, namespaces
from .fabric import HOST_QUEUE_PACKETS, Fabric
from .topology import Topology

CONGESTION_CONTROL = "cubic"
# Buffers that hold what a writer has in flight at once, and windows within the 16 MiB that mirroring keeps account of;
# F-RTO would take a replica's second copy for a false alarm.
SYSCTLS = {"tcp_rmem": "4096 8388608 16777216", "tcp_wmem": "4096 1048576 33554432", "tcp_frto": "0"}
# Where copies get lost, a relay halves what it sends at once: of eleven frames it loses less than of the kernel's 44.
SUPER_SEGMENT_BYTES = 16 << 10
# What Linux has by itself.
DEFAULTS = {"tcp_rmem": "4096 131072 6291456", "tcp_wmem": "4096 16384 4194304", "tcp_frto": "2"}


def hosts(fabric: Fabric, topology: Topology, names: Iterable[str] = ()) -> None:
    """Cubic congestion control on routes to the topology's hosts, larger buffers, no F-RTO, smaller super-segments; on
    all hosts by default."""
    for host in names or topology.hosts:
        space = kernel.Namespace(fabric.namespace(host))
        try:
            space.congestion_control("eth0", topology.network, topology.address(host), CONGESTION_CONTROL)
            space.super_segments("eth0", SUPER_SEGMENT_BYTES)
        finally:
            space.close()
        _set(fabric, host, SYSCTLS)


def defaults(fabric: Fabric, topology: Topology) -> None:
    """All hosts' TCP as Linux has it by itself, whatever this machine has."""
    for host in topology.hosts:
        space = kernel.Namespace(fabric.namespace(host))
        try:
            space.congestion_control("eth0", topology.network, topology.address(host), CONGESTION_CONTROL)
        finally:
            space.close()
        _set(fabric, host, DEFAULTS)


def _set(fabric: Fabric, host: str, values: dict[str, str]) -> None:
    with namespaces.inside(fabric.namespace(host)):
        for name, value in values.items():
            Path(f"/proc/sys/net/ipv4/{name}").write_text(value)


def uplinks(fabric: Fabric, topology: Topology, names: Iterable[str], rate_bit_s: int) -> None:
    """What these hosts send goes at a rate of its own; what they get keeps that of their links."""
    for host in names:
        (link,) = topology.links_of(host)
        shape = replace(link.shape, rate_bit_s=rate_bit_s)
        space = kernel.Namespace(fabric.namespace(host))
        try:
            space.shape("eth0", shape, max(shape.queue_bytes, HOST_QUEUE_PACKETS * shape.mtu), again=True)
        finally:
            space.close()

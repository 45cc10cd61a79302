"""Puts into a cluster with `dfs.encrypt.data.transfer`: by name, sealed once by the writer, beside Hadoop's own
encryption, by which each hop decrypts and encrypts anew, and beside the same by name in an open cluster.

Reads of a secured cluster go by stock TCP, so there is nothing to hold against each other.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field

from . import paths, payload, planes, transfer
from .cluster import TUNED, Properties
from .figures import Figure
from .say import say

PREFIX = "secure."
REPLICATION = 3
DATANODES = 4
WARM_UPS = 4  # not counted; JVMs compile in them
ENCRYPTED: Properties = {
    "dfs.block.access.token.enable": "true",
    "dfs.encrypt.data.transfer": "true",
    # The quicker of Hadoop's two ways by far: without it data is encrypted by RC4 or 3DES.
    "dfs.encrypt.data.transfer.cipher.suites": "AES/CTR/NoPadding",
}


@dataclass(frozen=True)
class Case:
    """A client's properties at one of the clusters."""

    label: str
    cluster: str
    properties: Properties = field(default_factory=dict)


SEALED, OPEN = Case("sealed", "sealed"), Case("open", "open")
CLUSTERS: dict[str, tuple[str, Properties]] = {
    "encrypted": ("tcp", ENCRYPTED),
    "sealed": ("ndn", ENCRYPTED | planes.RESOLVER),
    "open": ("ndn", {}),
}


def measure(size: int, runs: int) -> Iterator[Figure]:
    """Puts of one file by turns; all clusters stand at once, only one works."""
    directory = paths.OUT / "bench"
    directory.mkdir(parents=True, exist_ok=True)
    source, copy = directory / "input", directory / "copy"
    payload.make(source, size)
    pasted = planes.pasted("ndn")
    peers = (
        Case("encrypted", "encrypted", {key: pasted[key] for key in TUNED}),
        Case("encrypted default", "encrypted"),
    )
    cases = (*peers, SEALED, OPEN)
    costs: dict[str, list[transfer.Cost]] = defaultdict(list)
    with ExitStack() as stack:
        rigs = {
            name: stack.enter_context(
                transfer.rig(
                    plane, directory / f"secure-{name}", datanodes=DATANODES, cache_bytes=256 << 20, extra=extra
                )
            )
            for name, (plane, extra) in CLUSTERS.items()
        }
        for number in range(1 - WARM_UPS, runs + 1):
            for turn in range(len(cases)):  # each is first as often as last
                case = cases[(turn + number) % len(cases)]
                say(f"secure {case.label}: put, {'warm-up' if number < 1 else f'run {number} of {runs}'}")
                rig = rigs[case.cluster]
                cost = rig.put(source, "/file", REPLICATION, properties=case.properties, counts=number > 0)
                transfer.proven(rig.plane, cost, size, REPLICATION, rig.hosts)
                if case is SEALED and not cost.client("secured_connections"):
                    raise RuntimeError("sealed: no connection of the client was secured")
                if number in (1, runs):
                    copy.unlink(missing_ok=True)
                    rig.get("/file", copy, counts=False)
                    if payload.sha256(copy) != payload.sha256(source):
                        raise RuntimeError(f"{case.label}: the bytes read are not the bytes written")
                rig.remove("/file")
                if number > 0:
                    costs[case.label].append(cost)
    yield from figures(costs, runs)


def figures(costs: dict[str, list[transfer.Cost]], runs: int) -> Iterator[Figure]:
    """Medians of what is sealed over each of the others, and what both are."""

    def median(label: str, what: str) -> float:
        return statistics.median(cost.wall_s if what == "wall" else sum(cost.cpu_s.values()) for cost in costs[label])

    for label, peer, most in (
        ("encrypted", "Hadoop's own encryption (AES/CTR), packets and buffers as large", {"wall": 0.75, "cpu": 0.90}),
        ("encrypted default", "Hadoop's own encryption (AES/CTR), as shipped", {"wall": 0.62, "cpu": 0.80}),
        ("open", "by name in an open cluster", {"wall": 1.03, "cpu": 1.08}),
    ):
        name = f"secure.put.r3.sealed_over_{label.replace(' ', '_')}"
        for what, unit in (("wall", "s"), ("cpu", "CPU-s")):
            ours, theirs = median(SEALED.label, what), median(label, what)
            wanted = f"wanted: at most this; {peer}, same run"
            yield Figure(f"{name}.{what}", ours / theirs, "ratio", wanted, most[what], runs)
            yield Figure(f"{name}.{what}_each", ours, unit, f"{peer}, same run", theirs, runs)

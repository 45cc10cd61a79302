"""A file of a given size, written to a data centre on each plane and checked on every DataNode's disk."""

from __future__ import annotations

from pathlib import Path

from .. import payload, replicas, transfer
from ..net.data_center import LabRig
from ..procs import wait_until
from ..transfer import Cost
from .result import DIRECTORY


def source(name: str, size: int) -> Path:
    """A file of `size` bytes to write."""
    path = DIRECTORY / name / f"input-{size}"
    if not path.exists() or path.stat().st_size != size:
        path.parent.mkdir(parents=True, exist_ok=True)
        payload.make(path, size)
    return path


def block_digests(path: Path) -> list[str]:
    """SHA-256 of each block of a file."""
    return list(payload.sha256_pieces(path, transfer.BLOCK_BYTES))


def faults(rig: LabRig, target: str, file: Path, replication: int, cost: Cost | None) -> list[str]:
    """What is wrong with a file just written: each block on `replication` disks, byte for byte, and by name if named.

    Without a cost it is not asked how the bytes travelled.
    """
    found = []
    digests = block_digests(file)
    blocks = replicas.blocks(rig.cluster, target)[-len(digests) :]
    if len(blocks) != len(digests):
        return [f"{rig.plane}: {target}: {len(blocks)} blocks, not {len(digests)}"]
    for block, digest in zip(blocks, digests, strict=True):
        wait_until(
            f"{replication} finalized replicas of {block.name}",
            lambda name=block.name: len(replicas.of_block(rig.cluster, name)) >= replication,
            30,
            pause_s=0.3,
        )
        wrong = [r.host for r in replicas.of_block(rig.cluster, block.name) if r.sha256 != digest]
        if wrong:
            found.append(f"{rig.plane}: {target}: {block.name} is not what was written on {', '.join(wrong)}")
    if rig.plane == "ndn" and cost is not None:
        doubts = transfer.doubts_of_write(rig.plane, cost, file.stat().st_size, replication)
        found += [f"ndn: {target}: {doubt}" for doubt in doubts]
    return found

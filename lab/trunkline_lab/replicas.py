"""What became of a file: which DataNodes its pipeline went through, and what each of them holds on disk."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from .cluster import Cluster, DataNodeHost
from .payload import sha256

_ALLOCATED = re.compile(r"BLOCK\* allocate ((blk_\d+)_\d+), replicas=(.+?) for (\S+)")


@dataclass(frozen=True)
class Block:
    """A block as the NameNode allocated it: `pipeline` is D1, D2, … in order.

    `name` is "blk_<id>", `versioned` the same and "_<generation stamp>".
    """

    name: str
    versioned: str
    pipeline: list[DataNodeHost]


@dataclass(frozen=True)
class Replica:
    """A finalized replica on a DataNode's disk."""

    host: str
    length: int
    sha256: str


def blocks(cluster: Cluster, path: str) -> list[Block]:
    """The blocks allocated for `path` so far, from the NameNode's log; a put writes `path._COPYING_` first."""
    # Some clusters have one port and many addresses, on others the NameNode sees one address and many ports.
    known = {datanode.transfer: datanode for datanode in cluster.datanodes}
    by_port = {port(datanode): datanode for datanode in cluster.datanodes}
    found = []
    for line in (cluster.stage.logs / "namenode.log").read_text(errors="replace").splitlines():
        if (match := _ALLOCATED.search(line)) and match.group(4).removesuffix("._COPYING_") == path:
            replicas = match.group(3).split(", ")
            pipeline = [known.get(replica) or by_port[int(replica.rpartition(":")[2])] for replica in replicas]
            found.append(Block(match.group(2), match.group(1), pipeline))
    return found


def port(datanode: DataNodeHost) -> int:
    """The port of a DataNode's stock data transfer address."""
    return int(datanode.transfer.rpartition(":")[2])


def of_block(cluster: Cluster, block: str) -> list[Replica]:
    """The finalized replicas of a block on the disks of the DataNodes that run."""
    found = []
    for datanode in cluster.datanodes:
        if datanode.process is None or not datanode.process.running():
            continue
        for path in data_directory(cluster, datanode).rglob(f"finalized/**/{block}"):
            found.append(Replica(datanode.host, path.stat().st_size, sha256(path)))
    return found


def data_directory(cluster: Cluster, datanode: DataNodeHost) -> Path:
    return cluster.directory / "data" / datanode.host

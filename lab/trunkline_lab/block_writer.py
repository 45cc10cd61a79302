"""A client that writes a block of HDFS at a time, and how long each took (lab/hdfs/BlockWriter.java)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from . import paths
from .client_program import ClientProgram
from .cluster import Cluster

PROGRAM = paths.LAB / "hdfs" / "BlockWriter.java"
_LINE = re.compile(r"wrote (\d+) (\d+) (\d+)\s*")


@dataclass(frozen=True)
class Took:
    """Seconds of one write.

    `setup_s` is until all replicas have acknowledged the first packet, `data_s` from there until they have the last,
    `total_s` from the file's creation until it is closed.
    """

    setup_s: float
    data_s: float
    total_s: float


class BlockWriter:
    """A JVM on a client's host that writes `file`, or its beginning, again and again, each time as one block of its own
    file in HDFS."""

    def __init__(self, cluster: Cluster, host: str, file: Path, block_bytes: int) -> None:
        self.file = file
        self._program = ClientProgram(cluster, host, str(PROGRAM), str(file), str(block_bytes), name="writer")

    def begin(self, target: str, replication: int, size: int | None = None) -> None:
        """Has it write the file to `target`, or its first `size` bytes."""
        self._program.say(f"write {target} {replication} {self.file.stat().st_size if size is None else size}")

    def end(self) -> Took:
        """Waits for the write that was begun; raises ProcessFailed where it failed."""
        return took(self._program.read("wrote"))

    def write(self, target: str, replication: int, size: int | None = None) -> Took:
        """Both."""
        self.begin(target, replication, size)
        return self.end()

    def warm(self, target: str, replication: int, size: int) -> None:
        """Writes the first `size` bytes in packets of 4 KB: what DataNodes do for each packet is compiled then."""
        self._program.say(f"warm {target} {replication} {size}")
        self.end()

    def remove(self, target: str) -> None:
        """Deletes what was written."""
        self._program.say(f"remove {target}")
        self._program.read("removed")

    def close(self) -> None:
        """Ends the client."""
        self._program.close()


def took(line: str) -> Took:
    """What a writer printed of one write."""
    match = _LINE.fullmatch(line)
    if match is None:
        raise ValueError(f"a writer printed {line!r}")
    return Took(*(int(micros) / 1e6 for micros in match.groups()))

"""A client that puts files on DataNodes that it is told, and how long that took (lab/hdfs/PlacedPut.java)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from . import paths
from .client_program import ClientProgram
from .cluster import Cluster, DataNodeHost
from .procs import Process

PROGRAM = paths.LAB / "hdfs" / "PlacedPut.java"


class PlacedPut:
    """A JVM on a client's host that waits to put `files` into `directory`, each on the DataNodes beside it.

    The first of them is where the pipeline begins, if it is on the client's own host; HDFS may order the others anew.
    """

    def __init__(
        self,
        cluster: Cluster,
        host: str,
        directory: str,
        files: Sequence[tuple[Path, Sequence[DataNodeHost]]],
        replication: int,
    ) -> None:
        placed = [
            word for file, nodes in files for word in (str(file), ",".join(datanode.transfer for datanode in nodes))
        ]
        self._program = ClientProgram(cluster, host, str(PROGRAM), directory, str(replication), *placed, name="put")

    @property
    def process(self) -> Process:
        """The client's JVM."""
        return self._program.process

    def begin(self) -> None:
        """Has it put them."""
        self._program.say("put")

    def end(self, timeout_s: float) -> float:
        """Waits for the puts that were begun and for the client's end; returns how many seconds they took.

        Raises ProcessFailed where they failed, or took longer than `timeout_s`.
        """
        seconds = int(self._program.read("put", timeout_s).split()[1]) / 1e6
        self._program.close()
        return seconds

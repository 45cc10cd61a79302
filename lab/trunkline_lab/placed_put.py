"""A client that puts files on DataNodes that it is told, and how long that took (lab/hdfs/PlacedPut.java)."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from . import paths
from .cluster import Cluster, DataNodeHost
from .procs import Process, ProcessFailed, tail

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
        self.host = host
        self.process: Process = cluster.start_client(
            *(str(PROGRAM), directory, str(replication), *placed),
            name=f"put-{host}",
            host=host,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._read("ready")

    def begin(self) -> None:
        """Has it put them."""
        assert self.process.popen.stdin is not None
        self.process.popen.stdin.write(b"put\n")
        self.process.popen.stdin.flush()

    def end(self, timeout_s: float) -> float:
        """Waits for the puts that were begun and for its end; returns how many seconds they took.

        Raises ProcessFailed where they failed.
        """
        seconds = int(self._read("put").split()[1]) / 1e6
        if self.process.wait(timeout_s) != 0:
            raise self._failed()
        return seconds

    def _read(self, word: str) -> str:
        assert self.process.popen.stdout is not None
        line = self.process.popen.stdout.readline().decode(errors="replace")
        if not line.startswith(word):
            raise self._failed()
        return line

    def _failed(self) -> ProcessFailed:
        log = self.process.log
        return ProcessFailed(f"the puts at {self.host} failed; {log} ends:\n{tail(log)}")

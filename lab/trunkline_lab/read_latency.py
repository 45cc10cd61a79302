"""A client that reads a file of HDFS all the time, and how long each of its reads took (lab/hdfs/ReadLatency.java)."""

from __future__ import annotations

import math
import re
import subprocess
import zlib
from dataclasses import dataclass
from pathlib import Path

from . import paths
from .cluster import Cluster
from .procs import Process, ProcessFailed, tail, wait_until

PROGRAM = paths.LAB / "hdfs" / "ReadLatency.java"
_LINE = re.compile(r"^micros (\d+) (\d+)$", re.M)


@dataclass(frozen=True)
class Read:
    """One read: when it ended, in seconds of Unix time, and its seconds."""

    at_s: float
    took_s: float


class Reader:
    """Reads pieces of `file`, which was put at `path`, from a client's host until `stop`; compares each by its CRC."""

    def __init__(self, cluster: Cluster, host: str, path: str, file: Path, *, piece_bytes: int, pause_s: float) -> None:
        data = file.read_bytes()
        pieces = [data[at : at + piece_bytes] for at in range(0, len(data) - piece_bytes + 1, piece_bytes)]
        crcs = ",".join(str(zlib.crc32(piece)) for piece in pieces)
        arguments = [path, str(piece_bytes), str(round(pause_s * 1000)), crcs]
        self._process: Process = cluster.start_client(
            str(PROGRAM), *arguments, name="reader", host=host, stdin=subprocess.PIPE
        )
        wait_until("the reader", lambda: "\nready\n" in "\n" + self._log(), 120, self._process)

    def _log(self) -> str:
        return self._process.log.read_text(errors="replace")

    def stop(self) -> list[Read]:
        """Ends it; returns its reads. Raises ProcessFailed where a piece was not what had been written."""
        assert self._process.popen.stdin is not None
        self._process.popen.stdin.close()
        if self._process.wait(60) != 0:
            raise ProcessFailed(f"the reader failed; {self._process.log} ends:\n{tail(self._process.log)}")
        return reads(self._log())


def reads(log: str) -> list[Read]:
    """The reads that a reader printed."""
    return [Read(int(at_ms) / 1e3, int(micros) / 1e6) for at_ms, micros in _LINE.findall(log)]


def percentile(values: list[float], percent: float) -> float:
    """The least of the values that as many percent of them do not exceed."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]

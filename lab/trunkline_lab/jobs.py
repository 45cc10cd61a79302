"""Jobs of MapReduce out of published jars, run on a cluster with YARN by a client's host."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from .cluster import FSSHELL, Cluster
from .hostbytes import LinkBytes
from .procs import Process, ProcessFailed, tail

TIMEOUT_S = 1800

# "2026-11-21 12:00:30,123 INFO  mapreduce.Job:  map 0% reduce 0%"
_PROGRESS = re.compile(r"^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) \S+ +mapreduce\.Job: +map (\d+)% reduce (\d+)%", re.M)


@dataclass(frozen=True)
class Phase:
    """A phase of a job, and when it began as Hadoop's logs write it."""

    name: str
    began: str


@dataclass
class Jobs:
    """Runs jobs from a client's host; `phases` grows with each, `processes` are their clients."""

    cluster: Cluster
    scratch: Path  # for what is not in HDFS
    phases: list[Phase] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)
    read_links: Callable[[], LinkBytes] | None = None
    links: dict[str, LinkBytes] = field(default_factory=dict)  # that each job took, where `read_links` reads them

    def run(self, step: str, main: str, *arguments: str) -> str:
        """One job, to its end; returns what its client logged. Raises ProcessFailed when it fails."""
        before = self.read_links() if self.read_links else None
        process = self.cluster.client(main, *arguments, name=step, timeout_s=TIMEOUT_S)
        if self.read_links and before is not None:
            self.links[step] = self.read_links() - before
        self.processes.append(process)
        log = process.log.read_text(errors="replace")
        self.phases += phases_of(step, log)
        return log

    def seconds(self) -> float:
        """How long the last job's client ran."""
        wall_s = self.processes[-1].wall_s
        assert wall_s is not None
        return wall_s

    def shell(self, *words: str) -> None:
        """`hdfs dfs`."""
        self.cluster.client(FSSHELL, *words, name=words[0].lstrip("-"))

    def read(self, path: str) -> bytes:
        """What `hdfs dfs -cat` prints; a pattern is HDFS's to resolve."""
        process = self.cluster.start_client(FSSHELL, "-cat", path, name="cat", stdout=subprocess.PIPE)
        assert process.popen.stdout is not None
        found = process.popen.stdout.read()
        process.popen.stdout.close()
        if process.wait(TIMEOUT_S) != 0:
            raise ProcessFailed(f"{process.name} failed; {process.log} ends:\n{tail(process.log)}")
        return found


def phases_of(step: str, log: str) -> list[Phase]:
    """The map and the reduce phase of a job, from what its client logged; what lies before is its set-up."""
    found: dict[str, Phase] = {}
    for time, maps, _ in _PROGRESS.findall(log):
        found.setdefault("map", Phase(f"{step} map", time))
        if maps == "100":
            found.setdefault("reduce", Phase(f"{step} reduce", time))
    return list(found.values())

"""One file written and read twice on one plane, with what it cost: the experiment behind the demo and the benches."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from . import payload, planes
from .cluster import Cluster
from .hostbytes import HostBytes, LinkBytes
from .network import pick_loopback
from .procs import Process, Stage
from .say import say

PHASES = ("write", "first read", "second read")


@dataclass
class Phase:
    """What one FsShell command cost: seconds from its start to its exit, CPU of all hosts, bytes on their links."""

    wall_s: float
    cpu_s: dict[str, float]
    bytes: LinkBytes
    cache_hits: int = 0

    def cpu_total(self, hosts: list[str]) -> float:
        return sum(self.cpu_s.get(host, 0.0) for host in hosts)


@dataclass
class Transfer:
    """A put and its gets on one plane."""

    plane: str
    hosts: list[str]
    file_bytes: int
    phases: dict[str, Phase] = field(default_factory=dict)
    sha256_ok: bool = False
    unproven: list[str] = field(default_factory=list)  # why it can't be said that named data carried the bytes

    def bytes_out(self) -> dict[str, int]:
        """Bytes out of each host over all phases."""
        return {h: sum(p.bytes.out.get(h, 0) for p in self.phases.values()) for h in self.hosts}

    def bytes_into(self) -> dict[str, int]:
        """Bytes into each host over all phases."""
        return {h: sum(p.bytes.into.get(h, 0) for p in self.phases.values()) for h in self.hosts}


def run(
    plane_name: str, source: Path, directory: Path, *, replication: int, reads: int = 2, datanodes: int = 4
) -> Transfer:
    """Starts a cluster on the plane "tcp" or "ndn", writes `source`, reads it back `reads` times, ends everything."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    size = source.stat().st_size
    loopback = pick_loopback()
    with Stage(directory / "logs") as stage:
        router = None
        if plane_name == "ndn":
            router = planes.Router(stage, directory, loopback, cache_bytes=2 * size + (64 << 20))
            router.start()
            plane = planes.ndn(router, directory)
        else:
            plane = planes.tcp()
        cluster = Cluster(stage, directory, loopback, plane, datanodes=datanodes)
        say(f"{plane_name}: starting a NameNode and {datanodes} DataNodes")
        cluster.start()
        names = dict(cluster.hosts)
        if router:
            names[router.address] = "router"
        result = Transfer(plane_name, list(cluster.hosts.values()), size)
        with HostBytes(loopback.cidr, names, cluster.processes) as meter:
            watch = _Watch(stage, meter, router)
            say(f"{plane_name}: put")
            result.phases["write"] = watch.phase(lambda: cluster.put(source, "/file", replication=replication))
            wanted = payload.sha256(source)
            same = []
            for number in range(reads):
                say(f"{plane_name}: get {number + 1} of {reads}")
                copy = directory / f"copy-{number + 1}"
                result.phases[PHASES[1 + number]] = watch.phase(lambda copy=copy: cluster.get("/file", copy))
                same.append(payload.sha256(copy) == wanted)
                copy.unlink()
            result.sha256_ok = all(same)
            if meter.overruns:
                raise RuntimeError(
                    f"the kernel dropped word of ended sockets {meter.overruns} times; counts are too low"
                )
    shutil.rmtree(directory / "data", ignore_errors=True)
    return result


class _Watch:
    """Measures one command at a time."""

    def __init__(self, stage: Stage, meter: HostBytes, router: planes.Router | None) -> None:
        self._stage, self._meter, self._router = stage, meter, router

    def _cache_hits(self) -> int:
        return int(self._router.status()["cs_hits"]) if self._router else 0

    def phase(self, command: object) -> Phase:
        cpu, link, hits = self._stage.cpu_s(), self._meter.read(), self._cache_hits()
        process: Process = command()  # type: ignore[operator]
        spent = {host: s - cpu.get(host, 0.0) for host, s in self._stage.cpu_s().items()}
        assert process.wall_s is not None
        return Phase(process.wall_s, spent, self._meter.read() - link, self._cache_hits() - hits)

"""Files written and read on one plane, with what each command cost: the experiment behind the demo and the benches."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from . import memory, planes
from .cluster import FSSHELL, Cluster, Properties
from .hostbytes import HostBytes, LinkBytes
from .network import pick_loopback
from .procs import Process, Stage, wait_until
from .routers import Router
from .say import say

BLOCK_BYTES = 128 << 20  # HDFS's default
SETTLE_S = 3  # the kernel goes on freeing the pages of removed files for a while


@dataclass
class Cost:
    """What one FsShell command cost: seconds from its start to its exit, CPU and bytes by host."""

    wall_s: float
    cpu_s: dict[str, float]  # of every host, the router's too
    links: LinkBytes
    cache_hits: int  # in the router
    counters: dict[str, planes.Counters]  # of the plug-in, by host
    clients: list[str] = field(default_factory=lambda: ["client"])  # the hosts that clients count under

    def client(self, counter: str) -> int:
        """A counter of the clients' plug-ins."""
        return sum(self.counters.get(client, {}).get(counter, 0) for client in self.clients)

    def datanodes(self, counter: str) -> int:
        """A counter of the plug-in, summed over all but the clients."""
        return sum(counters.get(counter, 0) for host, counters in self.counters.items() if host not in self.clients)

    def cpu_of(self, hosts: Sequence[str]) -> float:
        """CPU seconds of some hosts together."""
        return sum(self.cpu_s.get(host, 0.0) for host in hosts)

    def fallbacks(self) -> dict[str, planes.Counters]:
        """Operations that went by stock TCP after all, by host and reason."""
        found = {
            host: {k: n for k, n in counters.items() if k.startswith("fallback.") and n}
            for host, counters in self.counters.items()
        }
        return {host: reasons for host, reasons in found.items() if reasons}


class Meter(Protocol):
    """Counts bytes over hosts' links; `overruns` is how often it may have missed some."""

    overruns: int

    def read(self) -> LinkBytes:
        """The counts now."""


class Rig:
    """A running cluster on one plane whose commands are measured."""

    def __init__(self, cluster: Cluster, meter: Meter, routers: Sequence[Router]) -> None:
        self.cluster, self.meter, self.routers = cluster, meter, routers
        self.hosts = list(cluster.hosts.values())
        self._sizes: dict[str, int] = {}  # of what was put

    @property
    def plane(self) -> str:
        return self.cluster.plane.name

    def put(
        self,
        source: Path,
        target: str,
        replication: int,
        *,
        host: str | None = None,
        properties: Properties | None = None,
        jvm: Sequence[str] = (),
        counts: bool = True,
    ) -> Cost:
        """`FsShell -put`, measured; one that does not count, as a warm-up, takes memory as it comes."""

        def put() -> Process:
            return self.cluster.put(source, target, replication=replication, host=host, properties=properties, jvm=jvm)

        self._sizes[target] = source.stat().st_size
        with memory.Supply(replication * self._sizes[target]) if counts else nullcontext():  # of DataNodes' page cache
            return self.measure(put)

    def get(
        self,
        source: str,
        target: Path,
        host: str | None = None,
        properties: Properties | None = None,
        *,
        counts: bool = True,
    ) -> Cost:
        """`FsShell -get` by a fresh client, measured; `counts` as for `put`."""
        with memory.Supply(self._sizes.get(source, 0)) if counts else nullcontext():  # of the copy's page cache
            return self.measure(lambda: self.cluster.get(source, target, host=host, properties=properties))

    @property
    def datanodes(self) -> list[str]:
        """The hosts that have a DataNode."""
        return [datanode.host for datanode in self.cluster.datanodes]

    def remove(self, *paths: str) -> None:
        """Deletes the only files, and waits until nothing is busy any more with their replicas' end."""
        self.cluster.client(FSSHELL, "-rm", "-skipTrash", *paths, name="rm")
        data = self.cluster.directory / "data"
        wait_until("the replicas' end", lambda: not any(data.rglob("blk_*")), 60, pause_s=0.2)
        time.sleep(SETTLE_S)

    def _cache_hits(self) -> int:
        return sum(router.cache_hits() for router in self.routers)

    def _counters(self) -> dict[str, planes.Counters]:
        """The plug-in's counters by host; a DataNode writes its own down a moment after an operation has ended."""
        if self.plane == "tcp":
            return {}
        time.sleep(0.3)
        labels = dict.fromkeys([*self.hosts, *self.cluster.clients.values(), *self.cluster.labels])
        return {label: planes.transport_counters(self.cluster.directory, label) for label in labels}

    def carried(self) -> int:
        """Bytes that the DataNodes have got by the plane so far: by UCX, or by name and along with records."""
        counters = self._counters()
        if self.plane == "ucx":
            return sum(counters.get(host, {}).get("ucx_bytes_received", 0) for host in self.datanodes)
        # What goes along with records is counted where it leaves, at clients and DataNodes.
        pulled = sum(counters.get(host, {}).get("bytes_pulled", 0) for host in self.datanodes)
        return pulled + sum(found.get("bytes_inline", 0) for found in counters.values())

    def measure(self, work: Callable[[], Process]) -> Cost:
        """What `work` cost; the seconds are those of the process that it returns, which has ended."""
        counters, hits = self._counters(), self._cache_hits()
        cpu, links = self.cluster.stage.cpu_s(), self.meter.read()
        process = work()
        spent = {host: s - cpu.get(host, 0.0) for host, s in self.cluster.stage.cpu_s().items()}
        links = self.meter.read() - links
        if self.meter.overruns:
            raise RuntimeError(f"the kernel dropped word of ended sockets {self.meter.overruns} times")
        assert process.wall_s is not None
        grown = {
            host: {key: value - counters[host].get(key, 0) for key, value in now.items()}
            for host, now in self._counters().items()
        }
        if self.plane == "ucx":
            # Shared memory passes the kernel by: what went through it, the transport itself counts.
            links = links.carrying(
                {host: counters.get("ucx_bytes_sent", 0) for host, counters in grown.items()},
                {host: counters.get("ucx_bytes_received", 0) for host, counters in grown.items()},
            )
        clients = list(self.cluster.clients.values())
        return Cost(process.wall_s, spent, links, self._cache_hits() - hits, grown, clients)


@contextmanager
def rig(
    plane_name: str,
    directory: Path,
    *,
    datanodes: int,
    cache_bytes: int,
    extra: Properties | None = None,
    set_up: planes.SetUp = planes.set_up,
) -> Iterator[Rig]:
    """Starts a cluster on a plane, as `set_up` has it; ends it, and removes its data, however it is left."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    loopback = pick_loopback()
    try:
        with Stage(directory / "logs") as stage:
            plane, router = set_up(plane_name, stage, directory, loopback, cache_bytes)
            cluster = Cluster(stage, directory, loopback.site(datanodes), plane, extra=extra)
            say(f"{plane_name}: starting a NameNode and {datanodes} DataNodes")
            cluster.start()
            addresses = dict(cluster.hosts)
            if router:
                addresses[loopback.address(planes.ROUTER_ADDRESS)] = "router"
            with HostBytes(loopback.cidr, addresses, cluster.processes) as meter:
                yield Rig(cluster, meter, [router] if router else [])
    finally:
        shutil.rmtree(directory / "data", ignore_errors=True)


def doubts_of_write(plane: str, cost: Cost, file_bytes: int, replication: int, hosts: Sequence[str] = ()) -> list[str]:
    """What keeps one from saying that a plane carried a write; empty when its counters prove it.

    Stock TCP has none but those of the links between `hosts`, where they are named: busy DataNodes may leave a pipeline
    with fewer replicas.
    """
    blocks = -(-file_bytes // BLOCK_BYTES)
    if plane == "ndn":
        return [
            *_less("blocks written by name", cost.client("named_writes"), blocks),
            *_less("bytes published by the client", cost.client("bytes_published"), file_bytes),
            *_less("bytes pulled by the DataNodes", cost.datanodes("bytes_pulled"), replication * file_bytes),
        ]
    if plane == "ucx":
        return [
            *_less("blocks written over UCX", cost.client("ucx_writes"), blocks),
            *_less("bytes sent over UCX by the client", cost.client("ucx_bytes_sent"), file_bytes),
            *_less(
                "bytes received over UCX by the DataNodes",
                cost.datanodes("ucx_bytes_received"),
                replication * file_bytes,
            ),
        ]
    # Each replica leaves one host and comes into another.
    return _less("bytes out of and into hosts", cost.links.total(hosts), 2 * replication * file_bytes) if hosts else []


def doubts_of_read(plane: str, cost: Cost, file_bytes: int) -> list[str]:
    """The same of a read."""
    if plane == "ndn":
        return _less("bytes read by name", cost.client("bytes_read"), file_bytes)
    if plane == "ucx":
        return _less("bytes received over UCX by the client", cost.client("ucx_bytes_received"), file_bytes)
    return []


def proven(plane: str, cost: Cost, file_bytes: int, replication: int, hosts: Sequence[str] = ()) -> Cost:
    """`cost`, once it is shown that the plane carried the write; raises RuntimeError otherwise."""
    if doubts := doubts_of_write(plane, cost, file_bytes, replication, hosts):
        raise RuntimeError(f"{plane} did not carry it all: {'; '.join(doubts)}")
    return cost


def _less(what: str, value: int, least: int) -> list[str]:
    return [f"{what}: {value}, not {least}"] if value < least else []

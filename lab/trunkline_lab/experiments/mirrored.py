"""Blocks written on a data centre with stock TCP and with mirrored replication: times, bytes over links, proof."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .. import payload, replicas
from ..block_writer import BlockWriter, Took
from ..cluster import Properties
from ..compilers import cpu_without_s
from ..net import data_center, tuning
from ..net.data_center import MIRROR, LabRig
from ..net.links import LinkCounts, LinkMeter
from ..net.topology import Topology
from ..net.trace import processor_ticks
from ..procs import wait_until
from ..transfer import BLOCK_BYTES
from .options import Options
from .result import DIRECTORY, Result, Row
from .writes import source

PLANES = ("tcp", MIRROR)
PACKET_BYTES = 64 << 10  # of HDFS, as the paper's
# Before what counts, each writer writes so often to all DataNodes that each has been in the middle of a pipeline: the
# first report of a JVM to the controller takes a tenth of a second and more.
WARM_BYTES, WARM_WRITES = 2 << 20, 4
# A JVM compiles by C2 what ran some ten thousand times.
COMPILED_BYTES, COMPILED_WRITES = 16 << 20, 4
LEAST_VIRTUAL = 0.5  # of a relayed block, so that it counts as mirrored
WAIT_S = 30

# Replicas are where the NameNode first put them: a write in which one is replaced would tell something else.
PROPERTIES: Properties = {"dfs.client.block.write.replace-datanode-on-failure.policy": "NEVER"}


@dataclass
class Written:
    """One block: how long it took, its pipeline, and what links carried, processes of hosts took of processors (but for
    JVMs' compilers) and percent of all processors' time anything took meanwhile, of all writers at that time."""

    took: Took
    pipeline: list[str]
    links: LinkCounts
    cpu_s: dict[str, float] = field(default_factory=dict)
    processors: float = 0.0


@dataclass
class Bench:
    """A data centre on one plane, with a writer on each of some hosts."""

    lab: LabRig
    file: Path
    result: Result
    writers: dict[str, BlockWriter]
    least_virtual: float
    _links: LinkMeter
    _count: int = 0

    def write(self, replication: int, hosts: Sequence[str] = ()) -> list[Written]:
        """The block at once from each of `hosts` (of all writers by default), checked on the disk of each replica."""
        self._count += 1
        names = {host: f"/{host}-{self._count}" for host in hosts or self.writers}
        stage, virtual = self.lab.cluster.stage, self.virtual_bytes()
        before, spent, ticks = self._links.read(), cpu_without_s(stage), processor_ticks()
        for host, target in names.items():
            self.writers[host].begin(target, replication)
        took = {host: self.writers[host].end() for host in names}
        busy, passed = (now - then for now, then in zip(processor_ticks(), ticks, strict=True))
        links = self._links.read() - before
        cpu = {host: seconds - spent.get(host, 0.0) for host, seconds in cpu_without_s(stage).items()}
        found = []
        for host, target in names.items():
            [block] = replicas.blocks(self.lab.cluster, target)
            pipeline = [datanode.host for datanode in block.pipeline]
            found.append(Written(took[host], pipeline, links, cpu, 100 * busy / max(1, passed)))
            self._check(target, replication, block.name)
        if self.lab.plane == MIRROR:
            copied = sum(connections_copied(host, one.pipeline) for host, one in zip(names, found, strict=True))
            self._prove(copied * self.file.stat().st_size, self.virtual_bytes() - virtual)
        for host, target in names.items():
            self.writers[host].remove(target)
        return found

    def virtual_bytes(self) -> int:
        """What DataNodes have not sent so far, since copies brought it."""
        agents = self.lab.center.agents
        return agents.counters().get("virtual_bytes", 0) if agents else 0

    def _check(self, target: str, replication: int, block: str) -> None:
        cluster, wanted = self.lab.cluster, payload.sha256(self.file)
        wait_until(
            f"{replication} finalized replicas of {target}",
            lambda: len(replicas.of_block(cluster, block)) >= replication,
            WAIT_S,
            pause_s=0.1,
        )
        if wrong := [found.host for found in replicas.of_block(cluster, block) if found.sha256 != wanted]:
            self.result.faults.append(f"{self.lab.plane}: {target} is not what was written on {', '.join(wrong)}")

    def _prove(self, relayed: int, virtual: int) -> None:
        if virtual <= self.least_virtual * relayed:
            self.result.faults.append(
                f"mirror: DataNodes left {virtual} bytes unsent of {relayed}: the block was not mirrored"
            )


@contextmanager
def bench(
    options: Options,
    name: str,
    plane: str,
    topology: Topology,
    size: int,
    *,
    result: Result,
    writers: Sequence[str] = (),
    uplinks_bit_s: int = 0,
    racks: bool = False,
    kind: str = "",
    least_virtual: float = LEAST_VIRTUAL,
    compiled: bool = False,
) -> Iterator[Bench]:
    """A data centre on a plane with TCP tuned alike, and writers of a block of `size` bytes, which have written some
    that do not count.

    `uplinks_bit_s` is the rate of what DataNodes' hosts send, if it is not that of their links. A mirrored block of
    which relays left no larger share than `least_virtual` unsent is a fault. With `compiled`, DataNodes have handled so
    many packets before that what they take of processors does not fall any more.
    """
    file = source(name, size)
    directory = DIRECTORY / name / (f"{plane}-{kind}" if kind else plane)
    hosts = writers or topology.roles.clients
    with data_center.rig(
        topology,
        plane,
        directory,
        lab=options.lab,
        racks=racks,
        extra=PROPERTIES,
        disk_bytes=len(topology.roles.datanodes) * len(hosts) * (2 * size + WARM_WRITES * WARM_BYTES),
        tuned=True,
    ) as lab:
        if uplinks_bit_s:
            tuning.uplinks(lab.center.fabric, topology, topology.roles.datanodes, uplinks_bit_s)
        with ExitStack() as stack:
            meter = LinkMeter(lab.center.fabric, topology)
            stack.callback(meter.close)
            made = {host: BlockWriter(lab.cluster, host, file, BLOCK_BYTES) for host in hosts}
            for host, writer in made.items():
                for number in range(WARM_WRITES):
                    writer.write(f"/warm-{host}-{number}", len(topology.roles.datanodes), WARM_BYTES)
                for number in range(COMPILED_WRITES if compiled else 0):
                    writer.warm(f"/compiled-{host}-{number}", len(topology.roles.datanodes), COMPILED_BYTES)
                    writer.remove(f"/compiled-{host}-{number}")
            yield Bench(lab, file, result, made, least_virtual, meter)
            for writer in made.values():
                writer.close()


def connections_copied(client: str, pipeline: Sequence[str]) -> int:
    """Connections of a pipeline whose bytes copies bring: all that DataNodes open, but for the first one's where the
    client is on its host, as that is what is copied then."""
    return len(pipeline) - 1 - (pipeline[0] == client)


def relays_cpu_s(written: Written) -> float:
    """Processor seconds of the hosts of the DataNodes that relay: their JVMs without the compilers, and agents of
    mirrored replication."""
    return sum(written.cpu_s.get(host, 0.0) for host in written.pipeline[:-1])


def uplink_bytes(written: Written) -> list[int]:
    """What the hosts of the DataNodes that relay have sent, first to last but one."""
    return [written.links.out(host) for host in written.pipeline[:-1]]


def processors(written: Sequence[Written]) -> float:
    """Percent of all processors' time that was busy during these writes, in the mean: near 100, they and not the links
    tell how long a write takes."""
    return sum(one.processors for one in written) / len(written)


def right(result: Result, what: str = "every replica is right, and mirrored") -> None:
    """The goal that each write so far is what was written on every replica's disk and that relays left it unsent, each
    of which is a fault where it isn't so. Comes before all goals that can be missed."""
    result.rows.append(Row(f"goal: {what}", "", None, None, None, ok=not result.faults))


def goal(result: Result, what: str, unit: str, value: float, limit: float, *, at_least: bool = False) -> None:
    """A row for a goal, and a fault where it does not hold."""
    holds = value >= limit if at_least else value <= limit
    result.rows.append(Row(f"goal: {what}", unit, None, None, value, limit=limit, ok=holds))
    if not holds:
        result.faults.append(f"{what}: {value:.3g} {unit}, {'below' if at_least else 'above'} {limit:g}")

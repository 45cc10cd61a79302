"""Blocks written on a data centre with stock TCP and with mirrored replication: times, bytes over links, proof."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .. import payload, replicas
from ..block_writer import BlockWriter, Took
from ..cluster import Properties
from ..net import data_center, tuning
from ..net.data_center import MIRROR, LabRig
from ..net.links import LinkCounts, LinkMeter
from ..net.topology import Topology
from ..procs import wait_until
from ..transfer import BLOCK_BYTES
from .options import Options
from .result import DIRECTORY, Result
from .writes import source

PLANES = ("tcp", MIRROR)
PACKET_BYTES = 64 << 10  # of HDFS, as the paper's
WARM_BYTES = 4 << 20
LEAST_VIRTUAL = 0.5  # of a relayed block, so that it counts as mirrored
WAIT_S = 30

# Replicas are where the NameNode first put them: a write in which one is replaced would tell something else.
PROPERTIES: Properties = {"dfs.client.block.write.replace-datanode-on-failure.policy": "NEVER"}


@dataclass
class Written:
    """One block: how long it took, its pipeline, and what links carried and processes of hosts took of processors
    meanwhile, of all writers at that time."""

    took: Took
    pipeline: list[str]
    links: LinkCounts
    cpu_s: dict[str, float] = field(default_factory=dict)


@dataclass
class Bench:
    """A data centre on one plane, with a writer on each of some hosts."""

    lab: LabRig
    file: Path
    result: Result
    writers: dict[str, BlockWriter]
    _links: LinkMeter
    _count: int = 0
    _virtual: dict[str, int] = field(default_factory=dict)

    def write(self, replication: int, hosts: Sequence[str] = ()) -> list[Written]:
        """The block at once from each of `hosts` (of all writers by default), checked on the disk of each replica."""
        self._count += 1
        names = {host: f"/{host}-{self._count}" for host in hosts or self.writers}
        stage, virtual = self.lab.cluster.stage, self.virtual_bytes()
        before, spent = self._links.read(), stage.cpu_s()
        for host, target in names.items():
            self.writers[host].begin(target, replication)
        took = {host: self.writers[host].end() for host in names}
        links = self._links.read() - before
        cpu = {host: seconds - spent.get(host, 0.0) for host, seconds in stage.cpu_s().items()}
        found = []
        for host, target in names.items():
            [block] = replicas.blocks(self.lab.cluster, target)
            found.append(Written(took[host], [datanode.host for datanode in block.pipeline], links, cpu))
            self._check(target, replication, block.name)
        if self.lab.plane == MIRROR:
            self._prove(replication, len(names), self.virtual_bytes() - virtual)
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

    def _prove(self, replication: int, blocks: int, virtual: int) -> None:
        relayed = (replication - 1) * blocks * self.file.stat().st_size
        if virtual < LEAST_VIRTUAL * relayed:
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
) -> Iterator[Bench]:
    """A data centre on a plane with TCP tuned alike, and writers of a block of `size` bytes, which have written one
    that does not count.

    `uplinks_bit_s` is the rate of what DataNodes' hosts send, if it is not that of their links.
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
        disk_bytes=len(topology.roles.datanodes) * len(hosts) * 2 * size,
        tuned=True,
    ) as lab:
        if uplinks_bit_s:
            tuning.uplinks(lab.center.fabric, topology, topology.roles.datanodes, uplinks_bit_s)
        with ExitStack() as stack:
            meter = LinkMeter(lab.center.fabric, topology)
            stack.callback(meter.close)
            warm = source(name, min(WARM_BYTES, size))
            for host in hosts:
                first = BlockWriter(lab.cluster, host, warm, BLOCK_BYTES)
                first.write(f"/warm-{host}", min(3, len(topology.roles.datanodes)))
                first.close()
            made = {host: BlockWriter(lab.cluster, host, file, BLOCK_BYTES) for host in hosts}
            yield Bench(lab, file, result, made, meter)
            for writer in made.values():
                writer.close()


def relays_cpu_s(written: Written) -> float:
    """Processor seconds of the hosts of the DataNodes that relay: their JVMs, and agents of mirrored replication."""
    return sum(written.cpu_s.get(host, 0.0) for host in written.pipeline[:-1])


def uplink_bytes(written: Written) -> list[int]:
    """What the hosts of the DataNodes that relay have sent, first to last but one."""
    return [written.links.out(host) for host in written.pipeline[:-1]]

"""A cluster in network namespaces whose block writes are mirrored, by a real Open vSwitch or by Linux bridges, and what
tests do with it."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from conftest import Bed, FlushingWriter

from trunkline_lab import mirror_agents, paths, payload, replicas
from trunkline_lab.cluster import QUICK_TO_NOTICE, QUICK_TO_START, DataNodeHost
from trunkline_lab.mirror_agents import MirrorAgents
from trunkline_lab.net import data_center, fabric, loss, openvswitch, topology_file
from trunkline_lab.net.data_center import DataCenter, LabRig
from trunkline_lab.net.links import LinkCounts, LinkMeter
from trunkline_lab.net.topology import Topology
from trunkline_lab.procs import Process, wait_until

TOPOLOGY = topology_file.parse(
    """
about = "t"
[link]
rate = "200mbit"
queue = "256KiB"
[[switch]]
name = "s1"
openflow = true
[[rack]]
name = "/a"
at = "s1"
hosts = ["h1..h6"]
[roles]
namenode = "h1"
datanodes = ["h2..h5"]
clients = ["h6"]
""",
    "mirrored",
    "mirrored.toml",
)
# Racks at two bridges: what goes to the other rack is in transit between them.
BRIDGES = topology_file.parse(
    """
about = "t"
[link]
rate = "200mbit"
queue = "256KiB"
[[switch]]
name = "s1"
[[switch]]
name = "s2"
[[rack]]
name = "/a"
at = "s1"
hosts = ["h1", "h2", "h3", "h6"]
[[rack]]
name = "/b"
at = "s2"
hosts = ["h4", "h5"]
[[links]]
ends = ["s1", "s2"]
[roles]
namenode = "h1"
datanodes = ["h2..h5"]
clients = ["h6"]
""",
    "bridged",
    "bridged.toml",
).mirrored()
LIMIT_S = 60
STEP = 128 << 10  # bytes by which a writer is seen to go on
REGISTERED = "Successfully sent block report"  # what a DataNode logs when the NameNode knows its storage


@dataclass
class Mirrored(Bed):
    """A cluster on the plane "mirror"."""

    center: DataCenter
    meter: LinkMeter

    @property
    def agents(self) -> MirrorAgents:
        assert self.center.agents is not None
        return self.center.agents

    def pipeline_of(self, path: str) -> list[DataNodeHost]:
        """The DataNodes of the newest block of `path`, first to last."""
        return replicas.blocks(self.cluster, path)[-1].pipeline

    def generation(self, path: str) -> int:
        """The newest generation stamp of the newest block of `path` that DataNodes have reported; 0 without any."""
        assert self.center.controller is not None
        number = int(replicas.blocks(self.cluster, path)[-1].name.removeprefix("blk_"))
        found = [row["generation"] for row in self.center.controller.mirrors() if row["block"] == number]
        return max(found, default=0)

    def armed(self, path: str, timeout_s: float = LIMIT_S, since: int = 0) -> None:
        """Waits until switches copy what is written to `path`, of generation stamp `since` or later, and its relays'
        programs know of it.
        """
        assert self.center.controller is not None
        controller, [*_, block] = self.center.controller, replicas.blocks(self.cluster, path)
        number = int(block.name.removeprefix("blk_"))

        def end(of: dict) -> str:
            return f"{of['address']}:{of['port']}"

        def all_there() -> bool:
            rows = [row for row in controller.mirrors() if row["block"] == number]
            newest = max(rows, key=lambda row: row["generation"], default=None)
            if newest is None or newest["state"] != "armed" or newest["head"] is None or newest["generation"] < since:
                return False
            # Not the NameNode's locations: of a block that is written it may name one that has died.
            wanted = {(end(hop["source"]), end(hop["destination"])) for hop in newest["hops"] if hop["position"] > 1}
            hosts = self.center.topology.roles.datanodes
            flows = [flow for host in hosts for flow in self.agents.status(host)["flows"]]
            return wanted <= {(flow["source"], flow["target"]) for flow in flows if flow["side"] == "send"}

        wait_until(f"the mirror of {path}", all_there, timeout_s)

    def count(self, name: str) -> int:
        """A counter of all agents' flows."""
        return self.agents.counters().get(name, 0)

    def lose(self, share: float) -> None:
        """Every DataNode's host loses this share of copies from now on."""
        for host in self.center.topology.roles.datanodes:
            loss.of_copies(self.center.fabric, host, share)

    def longest_pause_s(self, host: str, writer: Process, size: int) -> float:
        """For how long at most `host` sent next to nothing while `writer` there sent `size` bytes; at its end."""
        begun = last = self.meter.read().out(host)
        at, longest = 0.0, 0.0
        while writer.running():
            now, out = time.monotonic(), self.meter.read().out(host)
            if out - last >= STEP:
                longest = max(longest, now - at) if at else 0.0
                last, at = out, now
            elif at and out - begun < size:
                longest = max(longest, now - at)
            time.sleep(0.02)
        return longest

    def since(self, before: LinkCounts) -> LinkCounts:
        return self.meter.read() - before

    def assert_replicas(self, path: str, data: bytes, replication: int = 3) -> None:
        """The one block of `path` is `data` on the disks of `replication` DataNodes."""
        [block] = {block.name for block in replicas.blocks(self.cluster, path)[-1:]}
        wait_until(
            f"{replication} finalized replicas of {path}",
            lambda: len([r for r in replicas.of_block(self.cluster, block) if r.length == len(data)]) >= replication,
            LIMIT_S,
            pause_s=0.2,
        )
        wanted = payload.sha256_of(data)
        assert {r.host: r.sha256 for r in replicas.of_block(self.cluster, block) if r.sha256 != wanted} == {}

    def assert_all_ends(self) -> None:
        """Once nothing is written, neither controller nor switches have anything left of a mirror."""
        assert self.center.controller is not None
        controller = self.center.controller
        wait_until("the mirrors' end", lambda: not controller.mirrors(), LIMIT_S, pause_s=0.2)
        if self.center.bridges is not None:
            wait_until("the bridges' entries' end", lambda: not self.center.bridges.entries(), LIMIT_S)
            return
        switch = self.center.fabric.switch(self.center.topology, "s1")
        assert not [line for line in switch.ofctl("dump-flows").splitlines() if "priority=44" in line]

    def restore(self) -> None:
        """What a test has ended runs again, and no copy is lost any more."""
        self.lose(0)
        controller = self.center.controller
        assert controller is not None
        assert controller.process is not None
        if not controller.process.running():
            controller.start_controller()
            controller.wait_converged()
        for host, process in list(self.agents.processes.items()):
            if not process.running():
                self.agents.start_one(host)
        self.agents.wait_known(len(self.agents.processes))
        for datanode in self.cluster.datanodes:
            if datanode.process is None or not datanode.process.running():
                before = self.log_of(datanode.host).count(REGISTERED)
                self.cluster.start_datanode(datanode)
                # The NameNode takes it for alive all the while, if it was away for seconds only.
                wait_until(
                    f"{datanode.host}'s report",
                    lambda host=datanode.host, before=before: self.log_of(host).count(REGISTERED) > before,
                    LIMIT_S,
                    pause_s=0.2,
                )
        self.cluster.wait_live(len(self.cluster.datanodes))


class Writer(FlushingWriter):
    """A stock client that has written and hflushed a first piece to `path`, of which copies are made now."""

    def __init__(self, bed: Mirrored, path: str, first: bytes) -> None:
        super().__init__(bed.cluster, path)
        self.flush(first)
        bed.armed(path)


def missing(topology: Topology) -> str:
    """Why nothing can be mirrored here; empty where it can."""
    if os.geteuid() != 0:
        return "network namespaces and eBPF need root"
    return (openvswitch.missing() if topology.openflow else "") or mirror_agents.missing()


@contextmanager
def a_bed(name: str, topology: Topology = TOPOLOGY, *, by_doctor: bool = False) -> Iterator[Mirrored]:
    """A cluster, of tuned hosts or of such as the doctor wants; skips the test where there can be none, with why."""
    if lack := missing(topology):
        pytest.skip(lack)
    lab = f"m{os.getpid() % 10**8}"
    try:
        with data_center.rig(
            topology,
            data_center.MIRROR,
            paths.OUT / "e2e" / name,
            lab=lab,
            racks=False,
            extra=QUICK_TO_NOTICE,
            jvm=QUICK_TO_START,
            by_doctor=by_doctor,
        ) as rig:
            yield _bed(rig)
    except (fabric.LabError, PermissionError, subprocess.CalledProcessError) as error:
        if isinstance(error, PermissionError):
            pytest.skip(f"no network namespaces here: {error}")
        raise


def _bed(rig: LabRig) -> Mirrored:
    center = rig.center
    assert center.cluster is not None
    return Mirrored(
        center.stage, center.cluster, None, center.cluster.plane, center, LinkMeter(center.fabric, center.topology)
    )

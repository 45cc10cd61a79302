"""A topology as the kernel has it: made, looked at and removed.

What is made is written down first, in /run/trunkline-lab/<lab>/, so that `down` finds it whatever happened since. A lab
is namespaces alone (links, bridges and addresses live and end in them) and the processes in those, Open vSwitch's
daemons among them. Nothing else is touched: a namespace that this record does not name is not this lab's, whatever it
is called.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..memory import meminfo
from . import kernel, namespaces, openvswitch
from .topology import CONTROLLER, MANAGEMENT, Link, Topology

RUN = Path("/run/trunkline-lab")
DEFAULT_LAB = "lab"
MANAGEMENT_LINK = "mgmt0"  # into the management network, at switches and hosts
SWITCH_QUEUE_PACKETS = 64  # at least, since an acknowledgement takes as much of such a queue as a whole frame
HOST_QUEUE_PACKETS = 1000  # Linux's own default; a topology's queues are those of routers and switches


class LabError(RuntimeError):
    """The lab can't do what was asked; says why and what to do."""


@dataclass
class Record:
    """What a lab is made of, as written down. `namespaces` maps node to namespace; `extra` is the caller's."""

    lab: str
    topology: str
    namespaces: dict[str, str]
    extra: dict[str, Any] = field(default_factory=dict)


class Fabric:
    """A lab's namespaces. `lab` tells labs that stand side by side apart."""

    def __init__(self, lab: str = DEFAULT_LAB) -> None:
        if not re.fullmatch(r"[a-z0-9]{1,12}", lab):
            raise LabError(f"{lab!r} is no name of a lab: small letters and digits, 12 at most")
        self.lab = lab
        self.directory = RUN / lab
        self._record = self.directory / "lab.json"

    def namespace(self, node: str) -> str:
        """The name of a node's namespace."""
        return f"tl-{self.lab}-{node}"

    def hosts_file(self, node: str) -> Path:
        """What a node has as /etc/hosts."""
        return self.directory / "etc" / node / "hosts"

    def switch(self, topology: Topology, name: str) -> openvswitch.Switch:
        """An OpenFlow switch of a topology that is up."""
        directory = self.directory / "switch" / name
        return openvswitch.Switch(name, topology.dpid(name), directory, lambda words: self.command(name, words))

    @property
    def bpf(self) -> Path:
        """A BPF file system of the lab's own, mounted on first use and unmounted with the lab: what is pinned there
        outlives its process and not the lab."""
        path = self.directory / "bpf"
        if not path.is_mount():
            namespaces.mount_bpf(path)
        return path

    def command(self, node: str, words: list[str]) -> list[str]:
        """`words` as run on a node."""
        return namespaces.command(self.namespace(node), self.hosts_file(node), node, words)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else makes or removes this lab meanwhile; a lab that was killed holds no lock."""
        RUN.mkdir(exist_ok=True)
        with (RUN / f"{self.lab}.lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise LabError(
                    f"lab {self.lab!r} is being used by another command; wait, or take --lab NAME"
                ) from error
            yield

    def record(self) -> Record | None:
        """What was made and not removed, or None."""
        try:
            return Record(**json.loads(self._record.read_text()))
        except FileNotFoundError:
            return None

    def write(self, record: Record) -> None:
        """Writes the record down, whole or not at all."""
        self.directory.mkdir(parents=True, exist_ok=True)
        fresh = self._record.with_suffix(".new")
        fresh.write_text(json.dumps(vars(record), indent=2) + "\n")
        fresh.rename(self._record)

    # Making

    def up(self, topology: Topology, **extra: Any) -> None:  # noqa: ANN401
        """Makes the namespaces and links of a topology; what an earlier lab of this name left is removed first."""
        if topology.openflow and (lack := openvswitch.missing()):
            raise LabError(lack)
        self.down()
        wanted = {node: self.namespace(node) for node in dict.fromkeys((*topology.nodes, *topology.management))}
        if strange := [name for name in wanted.values() if namespaces.exists(name)]:
            raise LabError(
                f"namespace {strange[0]} exists and is not of this lab's making; "
                f"take --lab NAME, or remove it with `ip netns del {strange[0]}`"
            )
        self.write(Record(self.lab, topology.name, wanted, extra))
        try:
            self._make(topology, wanted)
        except BaseException:
            self.down()
            raise

    def _make(self, topology: Topology, wanted: dict[str, str]) -> None:
        self._write_hosts(topology)
        with contextlib.ExitStack() as stack:
            made = {}
            for node, name in wanted.items():
                made[node] = kernel.Namespace.make(name)
                stack.callback(made[node].close)
            for link in topology.links:
                a, b = link.ends
                made[a].cable(interface(topology, a, link), made[b], interface(topology, b, link), link.shape.mtu)
            for node in topology.bridges:
                made[node].bridge([interface(topology, node, link) for link in topology.links_of(node)])
            for node in (*topology.hosts, *topology.bridges):
                name = kernel.BRIDGE if node not in topology.hosts else "eth0"
                made[node].address(name, topology.address(node), topology.network.prefixlen)
            for link in topology.links:
                for node in link.ends:
                    _shape(topology, made[node], node, link)
            if topology.openflow:
                for node in topology.hosts:
                    made[node].without_offload("eth0")
            if topology.controlled:
                self._make_management(topology, made)
        for node in topology.openflow:
            self.switch(topology, node).make(
                openvswitch.ports(topology, node), openvswitch.controller_address(topology)
            )

    def _make_management(self, topology: Topology, made: dict[str, kernel.Namespace]) -> None:
        """The network in which a controller speaks with its switches, and with the hosts that it asks about jobs."""
        addresses, home = topology.management, made[CONTROLLER]
        nodes = [node for node in addresses if node != CONTROLLER]
        for node in nodes:
            home.cable(f"to-{node}", made[node], MANAGEMENT_LINK, 1500)
        home.bridge([f"to-{node}" for node in nodes])
        home.address(kernel.BRIDGE, addresses[CONTROLLER], MANAGEMENT.prefixlen)
        for node in nodes:
            made[node].address(MANAGEMENT_LINK, addresses[node], MANAGEMENT.prefixlen)
            if node in topology.hosts:
                home.route(topology.address(node), addresses[node])

    def _write_hosts(self, topology: Topology) -> None:
        everyone = "".join(f"{topology.address(node)} {node}\n" for node in topology.nodes)
        for node in dict.fromkeys((*topology.nodes, *topology.management)):
            path = self.hosts_file(node)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"127.0.0.1 localhost\n{everyone}")

    # Looking and removing

    def down(self) -> int:
        """Ends what runs in the lab and removes what was made; returns how many namespaces that were."""
        record = self.record()
        if record is None:
            return 0
        there = [name for name in record.namespaces.values() if namespaces.exists(name)]
        namespaces.end_processes(there)
        for name in there:
            namespaces.remove(name)
        namespaces.unmount(self.directory / "bpf")
        shutil.rmtree(self.directory)
        return len(there)

    def processes(self) -> dict[str, list[int]]:
        """Pids by node, of all that runs in the lab."""
        record = self.record()
        found: dict[str, list[int]] = {}
        if record is not None:
            nodes = {name: node for node, name in record.namespaces.items()}
            for pid, name in namespaces.processes(list(nodes)).items():
                found.setdefault(nodes[name], []).append(pid)
        return found


def _shape(topology: Topology, namespace: kernel.Namespace, node: str, link: Link) -> None:
    """A link's rate and queue at one of its ends; at an OpenFlow switch the rate is the switch's own to make."""
    name, shape = interface(topology, node, link), link.shape
    if node in topology.openflow:
        namespace.queue_packets(name, max(SWITCH_QUEUE_PACKETS, shape.queue_bytes // shape.mtu))
    elif node in topology.hosts:
        namespace.shape(name, shape, max(shape.queue_bytes, HOST_QUEUE_PACKETS * shape.mtu))
    else:
        namespace.shape(name, shape, shape.queue_bytes)


def interface(topology: Topology, node: str, link: Link) -> str:
    """The name of a link's end at a node."""
    return "eth0" if node in topology.hosts else f"to-{link.other(node)}"


def preflight(
    needed_memory_bytes: int = 0,
    disk: Path | None = None,
    needed_disk_bytes: int = 0,
    topology: Topology | None = None,
) -> None:
    """Says all that keeps a lab from being made here, before anything is; `disk` is where its files will lie."""
    wrong = []
    if topology and topology.openflow and (lack := openvswitch.missing()):
        wrong.append(lack)
    if os.geteuid() != 0:
        wrong.append("network namespaces need root; run it by sudo")
    for tool, package in (("nsenter", "util-linux"), ("unshare", "util-linux"), ("mount", "mount")):
        if shutil.which(tool) is None:
            wrong.append(f"{tool} is missing; install {package}")
    if not Path("/proc/self/ns/net").exists():
        wrong.append("this kernel has no network namespaces (CONFIG_NET_NS)")
    available = meminfo("MemAvailable")
    if available < needed_memory_bytes:
        wrong.append(
            f"{needed_memory_bytes >> 20} MiB of memory are needed and {available >> 20} MiB are there; "
            "take a topology with fewer DataNodes"
        )
    if disk is not None and (free := free_bytes(disk)) < needed_disk_bytes:
        wrong.append(
            f"{needed_disk_bytes >> 20} MiB are needed on the disk of {disk} and {free >> 20} MiB are free; "
            "make room, or take a smaller --scale"
        )
    if wrong:
        raise LabError("; ".join(wrong))


def free_bytes(directory: Path) -> int:
    """What may still be written in a directory, which need not be there yet."""
    return shutil.disk_usage(next(there for there in (directory, *directory.parents) if there.exists())).free

"""trunkline.dscp on the wire: what a put, its pipeline and a get send carries the mark of its category.

In a network namespace, where the kernel answers as it was asked (net.ipv4.tcp_reflect_tos).
"""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import MIB, Bed

from trunkline_lab import paths, replicas
from trunkline_lab.cluster import FSSHELL
from trunkline_lab.net import namespaces
from trunkline_lab.procs import Stage, wait_until

pytestmark = pytest.mark.e2e

CLIENT_WRITE, CLIENT_READ, REPLICATION, NAMENODE = 18, 26, 8, 24
ETH_P_ALL, SO_RCVBUFFORCE = 3, 33
TCP, UDP = 6, 17
SIZE = 6 * MIB + 77


@dataclass(frozen=True)
class Sent:
    """Where packets of one kind went, as address:port, and what marked them."""

    source: str
    target: str
    dscp: int


class Wire:
    """Counts the payload of all that goes over the loopback interface of the calling thread's namespace."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 * MIB)
        self._socket.bind(("lo", ETH_P_ALL))
        self._socket.settimeout(0.1)
        self._lock = threading.Lock()
        self._sent: Counter[Sent] = Counter()
        self._ends = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ends:
            try:
                head, (_, protocol, kind, *_) = self._socket.recvfrom(128)
            except TimeoutError:
                continue
            if kind != socket.PACKET_OUTGOING and (seen := _payload(protocol, head)):
                with self._lock:
                    self._sent[seen[0]] += seen[1]

    def take(self) -> Counter[Sent]:
        """Payload bytes since the last look."""
        with self._lock:
            sent, self._sent = self._sent, Counter()
        return sent

    def close(self) -> None:
        self._ends = True
        self._thread.join()
        self._socket.close()


def _payload(protocol: int, head: bytes) -> tuple[Sent, int] | None:
    """What the head of an IP packet says of its payload; None for packets that carry none."""
    if protocol == 0x0800:
        start, length, carried, byte = (head[0] & 15) * 4, struct.unpack_from("!H", head, 2)[0], head[9], head[1]
        source, target = (socket.inet_ntop(socket.AF_INET, head[at : at + 4]) for at in (12, 16))
    elif protocol == 0x86DD:
        start, length, carried = 40, 40 + struct.unpack_from("!H", head, 4)[0], head[6]
        byte = struct.unpack_from("!H", head)[0] >> 4 & 0xFF
        source, target = (f"[{socket.inet_ntop(socket.AF_INET6, head[at : at + 16])}]" for at in (8, 24))
    else:
        return None
    if carried not in (TCP, UDP):
        return None
    ports = struct.unpack_from("!HH", head, start)
    own = 8 if carried == UDP else (head[start + 12] >> 4) * 4
    sent = Sent(f"{source}:{ports[0]}", f"{target}:{ports[1]}", byte >> 2)
    return (sent, length - start - own) if length > start + own else None


def marks_toward(sent: Counter[Sent], target: str) -> Counter[int]:
    """Bytes to an address:port by their mark."""
    found: Counter[int] = Counter()
    for seen, count in sent.items():
        if seen.target == target:
            found[seen.dscp] += count
    return found


def marks_from(sent: Counter[Sent], source: str, host: str = "") -> Counter[int]:
    """Bytes from an address:port by their mark, to one host's address alone where it is given."""
    found: Counter[int] = Counter()
    for seen, count in sent.items():
        if seen.source == source and seen.target.startswith(f"{host}:" if host else ""):
            found[seen.dscp] += count
    return found


@contextmanager
def own_network(name: str) -> Iterator[Wire]:
    """The calling thread, and what it starts, in a namespace with a loopback interface and nothing else."""
    if os.geteuid() != 0:
        pytest.skip("needs root, for a network namespace")
    namespaces.make(name)
    try:
        with namespaces.inside(name):
            assert os.system("ip link set lo up") == 0
            Path("/proc/sys/net/ipv4/tcp_reflect_tos").write_text("1")
            wire = Wire()
            try:
                yield wire
            finally:
                wire.close()
    finally:
        namespaces.remove(name)


@pytest.fixture
def wire() -> Iterator[Wire]:
    with own_network(f"marks-{os.getpid()}") as wire:
        yield wire


def put(bed: Bed, wire: Wire, path: str, data: bytes, tmp_path: Path, **how: Any) -> Counter[Sent]:
    source = tmp_path / "source"
    source.write_bytes(data)
    wire.take()
    bed.cluster.put(source, path, **how)
    return wire.take()


def get(bed: Bed, wire: Wire, path: str, data: bytes, tmp_path: Path) -> Counter[Sent]:
    wire.take()
    assert bed.read(path, tmp_path) == data
    return wire.take()


def test_stock_transfer(wire: Wire, make_bed, data: bytes, tmp_path: Path) -> None:
    bed = make_bed(extra={"trunkline.transport": "tcp", "trunkline.dscp": "on"})
    whole = data[:SIZE]
    sent = put(bed, wire, "/file", whole, tmp_path)
    first, *others = (datanode.transfer for datanode in replicas.blocks(bed.cluster, "/file")[0].pipeline)
    toward = marks_toward(sent, first)
    assert set(toward) == {CLIENT_WRITE} and toward[CLIENT_WRITE] >= SIZE, toward
    assert set(marks_from(sent, first)) == {CLIENT_WRITE}, "acknowledgements, as the kernel reflects"
    for other in others:
        toward = marks_toward(sent, other)
        assert set(toward) == {REPLICATION} and toward[REPLICATION] >= SIZE, toward
        assert set(marks_from(sent, other)) == {REPLICATION}
    assert set(marks_toward(sent, bed.cluster.rpc)) == {NAMENODE}, "of client and DataNodes"
    assert set(marks_from(sent, bed.cluster.rpc)) == {NAMENODE}
    sent = get(bed, wire, "/file", whole, tmp_path)
    read = sum((marks_from(sent, datanode.transfer) for datanode in bed.cluster.datanodes), Counter())
    assert set(read) == {CLIENT_READ} and read[CLIENT_READ] >= SIZE, read
    put(bed, wire, "/one", whole, tmp_path, replication=1)
    (block,) = replicas.blocks(bed.cluster, "/one")
    bed.cluster.client(FSSHELL, "-setrep", "2", "/one", name="setrep")
    wait_until("a second replica", lambda: len(replicas.of_block(bed.cluster, block.name)) == 2, 60, pause_s=0.2)
    sent = wire.take()
    copied = sum((marks_toward(sent, datanode.transfer) for datanode in bed.cluster.datanodes), Counter())
    assert set(copied) == {REPLICATION} and copied[REPLICATION] >= SIZE, copied
    assert bed.total("marks_refused") == 0


def test_nothing_is_marked_without_the_setting(wire: Wire, make_bed, data: bytes, tmp_path: Path) -> None:
    bed = make_bed(extra={"trunkline.transport": "tcp"})
    sent = put(bed, wire, "/file", data[:SIZE], tmp_path) + get(bed, wire, "/file", data[:SIZE], tmp_path)
    assert sum(sent.values()) >= 4 * SIZE
    assert {seen.dscp for seen in sent} == {0}


def test_by_name(wire: Wire, make_bed, data: bytes, tmp_path: Path) -> None:
    bed = make_bed(extra={"trunkline.dscp": "on"})
    assert bed.router is not None
    router = bed.router.face.removeprefix("tcp://")
    whole = data[:SIZE]
    sent = put(bed, wire, "/file", whole, tmp_path)
    first, *others = (datanode.address for datanode in replicas.blocks(bed.cluster, "/file")[0].pipeline)
    client = bed.cluster.site.clients[0][1]
    published = Counter({seen.dscp: n for seen, n in sent.items() if seen.target == router and client in seen.source})
    assert published[CLIENT_WRITE] >= SIZE, published
    assert marks_from(sent, router, first)[CLIENT_WRITE] >= SIZE, sent
    for other in others:
        assert marks_from(sent, router, other)[REPLICATION] >= SIZE, sent
        assert marks_from(sent, router, other)[CLIENT_WRITE] < SIZE / 10, sent
    # What the router has not in its cache comes from a DataNode.
    put(bed, wire, "/other", whole, tmp_path, properties={"trunkline.transport": "tcp"})
    sent = get(bed, wire, "/other", whole, tmp_path)
    assert marks_from(sent, router, client)[CLIENT_READ] >= SIZE, sent
    assert marks_toward(sent, router)[CLIENT_READ] >= SIZE, "from the DataNode"
    bed.assert_carried()
    assert bed.total("marks_refused") == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
def test_faces_of_a_router(wire: Wire, host: str, tmp_path: Path) -> None:
    """Over TCP and UDP, in both versions of IP; each end marks what it sends itself."""
    config = tmp_path / "router.toml"
    peers = {f"tcp://{host}:6401": 46, f"udp://{host}:6402": 10}
    config.write_text(
        f'[[face]]\nlisten = "unix://{tmp_path}/router.sock"\n'
        + "".join(f'[[face]]\nlisten = "{peer}"\n' for peer in peers)
        + "".join(f'[[face]]\nconnect = "{peer}"\ndscp = {dscp}\n' for peer, dscp in peers.items())
    )
    with Stage(tmp_path / "logs") as stage:
        router = stage.start("router", "router", [str(paths.TRUNKLINE), "fwd", "run", "--config", str(config)])
        sent: Counter[Sent] = Counter()

        def said() -> bool:
            sent.update(wire.take())
            return all(marks_toward(sent, peer.partition("://")[2]) for peer in peers)

        wait_until("a greeting on each face", said, 20, router)
    for peer, dscp in peers.items():
        assert set(marks_toward(sent, peer.partition("://")[2])) == {dscp}

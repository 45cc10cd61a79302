"""What goes wrong while a block is mirrored: the file is exact on all replicas, and writes go on."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from conftest import MIB
from mirrored import LIMIT_S, TOPOLOGY, Mirrored, Writer, a_bed

from trunkline_lab.cluster import FSSHELL
from trunkline_lab.net import openvswitch
from trunkline_lab.procs import wait_until

pytestmark = pytest.mark.matrix

SIZE = 48 * MIB
FIRST = 64 << 10
THIRD = SIZE // 3


@pytest.fixture(scope="module")
def cluster() -> Iterator[Mirrored]:
    with a_bed("mirror-faults") as bed:
        yield bed


@pytest.fixture
def bed(cluster: Mirrored) -> Iterator[Mirrored]:
    yield cluster
    cluster.restore()


class Thirds:
    """A file of which a third is written before something happens, and the rest after it."""

    def __init__(self, bed: Mirrored, path: str, data: bytes) -> None:
        self._bed, self.path, self._data = bed, path, data
        self._writer = Writer(bed, path, data[:FIRST])
        self._writer.flush(data[FIRST:THIRD])

    def goes_on(self) -> None:
        self._writer.flush(self._data[THIRD : 2 * THIRD])

    def ends(self, tmp_path: Path) -> None:
        self._writer.flush(self._data[2 * THIRD :])
        self._writer.finish()
        self._bed.assert_whole(self.path, self._data, tmp_path)


@pytest.mark.parametrize("victim", [1, 2, 3])
@pytest.mark.parametrize("share", [0.0, 0.01])
def test_a_datanode_is_killed_in_mid_block(bed: Mirrored, data: bytes, tmp_path: Path, victim: int, share: float):
    file = Thirds(bed, f"/killed-{victim}-{share}", data)
    before = bed.generation(file.path)
    bed.lose(share)
    bed.pipeline_of(file.path)[victim - 1].process.kill()
    file.goes_on()
    # What is left of the pipeline is mirrored again; where agents are slow, when it is reported again.
    bed.armed(file.path, timeout_s=3 * LIMIT_S, since=before + 1)
    virtual = bed.count("virtual_bytes")
    file.ends(tmp_path)
    assert bed.count("virtual_bytes") > virtual
    bed.assert_all_ends()


@pytest.mark.parametrize("share", [0.001, 0.01, 0.05, 0.2, 0.8])
def test_copies_are_lost(bed: Mirrored, data: bytes, tmp_path: Path, share: float):
    file = Thirds(bed, f"/lost-{share}", data)
    virtual = bed.count("virtual_bytes")
    bed.lose(share)
    file.goes_on()
    file.ends(tmp_path)
    assert bed.count("virtual_bytes") > virtual


def test_all_copies_are_lost_for_a_while(bed: Mirrored, data: bytes, tmp_path: Path):
    """Relays send what copies do not bring, and count it."""
    file = Thirds(bed, "/gone", data)
    sent = bed.count("real_bytes") + bed.count("retransmitted_bytes")
    bed.lose(1)
    file.goes_on()
    bed.lose(0)
    assert bed.count("real_bytes") + bed.count("retransmitted_bytes") - sent > THIRD
    file.ends(tmp_path)


def test_the_first_copies_are_lost(bed: Mirrored, data: bytes, tmp_path: Path):
    """Where each replica's stream begins is known from the connections' own set-up."""
    bed.lose(1)
    mirrored = bed.count("mirrored")
    file = Thirds(bed, "/first", data)
    virtual = bed.count("virtual_bytes")
    assert bed.count("mirrored") == mirrored
    bed.lose(0)
    file.goes_on()
    file.ends(tmp_path)
    assert bed.count("virtual_bytes") > virtual


@contextmanager
def late_copies(bed: Mirrored) -> Iterator[list[int]]:
    """Every tenth copy leaves the switch twice, the second time 3 ms late; their number is known at the end."""
    program = Path(__file__).with_name("late_copies.py")
    devices = [f"to-{host}" for host in bed.center.topology.roles.datanodes]
    command = [sys.executable, str(program), "10", "3", *devices]
    process = bed.stage.start("late-copies", "s1", command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.popen.stdin is not None
    assert process.popen.stdout is not None
    assert process.popen.stdout.readline() == b"ready\n"
    sent: list[int] = []
    try:
        yield sent
    finally:
        process.popen.stdin.close()
        sent.append(int(process.popen.stdout.readline()))
        assert process.wait(30) == 0


@pytest.mark.parametrize("lost", [0.0, 0.5], ids=["twice", "out-of-order"])
def test_copies_come_late(bed: Mirrored, data: bytes, tmp_path: Path, lost: float):
    """Twice; and where the first one of two is lost, behind those that were sent after it."""
    file = Thirds(bed, f"/late-{lost}", data)
    virtual, stale = bed.count("virtual_bytes"), bed.count("mirror_stale")
    with late_copies(bed) as sent:
        bed.lose(lost)
        file.goes_on()
        bed.lose(0)
    file.ends(tmp_path)
    assert sent[0] > 20
    if not lost:
        assert bed.count("mirror_stale") > stale
    assert bed.count("virtual_bytes") > virtual


@pytest.mark.parametrize("place", [2, 3])
def test_a_replicas_link_takes_smaller_packets(bed: Mirrored, data: bytes, tmp_path: Path, place: int):
    """Copies of full size do not fit there, so that the replica before it sends what its connection has agreed on."""
    wanted = bed.cluster.datanodes[place].host
    link = ["ip", "link", "set", "dev", "eth0", "mtu"]
    bed.stage.run("mtu", wanted, [*link, "1300"], timeout_s=10)
    try:
        real = bed.count("real_bytes")
        for number in range(40):  # until that host has its place in a pipeline
            path = f"/mtu-{place}-{number}"
            writer = Writer(bed, path, data[:FIRST])
            is_there = bed.pipeline_of(path)[place - 1].host == wanted
            if is_there:
                writer.flush(data[FIRST:THIRD])
            writer.finish()
            if is_there:
                break
        bed.assert_whole(path, data[:THIRD], tmp_path)
        assert bed.count("real_bytes") - real > THIRD / 2
    finally:
        bed.stage.run("mtu", wanted, [*link, "1500"], timeout_s=10)


@pytest.mark.parametrize("place", [2, 3])
def test_a_replica_reads_slowly(bed: Mirrored, data: bytes, tmp_path: Path, place: int):
    """It runs for a fifth of the time: the client is held back, and nothing is lost."""
    file = Thirds(bed, f"/slow-{place}", data)
    virtual = bed.count("virtual_bytes")
    process = bed.pipeline_of(file.path)[place - 1].process
    done = threading.Event()

    def slow_down() -> None:
        while not done.is_set():
            process.signal(signal.SIGSTOP)
            done.wait(0.2)
            process.signal(signal.SIGCONT)
            done.wait(0.05)

    slowing = threading.Thread(target=slow_down)
    slowing.start()
    try:
        file.goes_on()
    finally:
        done.set()
        slowing.join()
    file.ends(tmp_path)
    assert bed.count("virtual_bytes") > virtual
    bed.assert_all_ends()


def test_the_controller_is_killed_and_returns(bed: Mirrored, data: bytes, tmp_path: Path):
    """What is mirrored stays so; a block that begins meanwhile goes by stock TCP, and is counted."""
    file = Thirds(bed, "/controller", data)
    controller = bed.center.controller
    controller.process.kill()
    file.goes_on()
    unreachable = bed.total("mirror_unreachable")
    source = tmp_path / "meanwhile"
    source.write_bytes(data[:MIB])
    bed.cluster.put(source, "/meanwhile")
    wait_until("it to be counted", lambda: bed.total("mirror_unreachable") > unreachable, LIMIT_S)
    bed.assert_replicas("/meanwhile", data[:MIB])
    controller.start_controller()
    controller.wait_converged()
    file.ends(tmp_path)


@pytest.mark.parametrize("place", [1, 2, 3])
def test_an_agent_is_killed_and_returns(bed: Mirrored, data: bytes, tmp_path: Path, place: int):
    """What it has pinned goes on without it; the next one adopts it."""
    file = Thirds(bed, f"/agent-{place}", data)
    host = bed.pipeline_of(file.path)[place - 1].host
    bed.agents.processes[host].kill()
    virtual = bed.agents.counters([host]).get("virtual_bytes", 0)
    file.goes_on()
    if place < 3:
        assert bed.agents.counters([host]).get("virtual_bytes", 0) > virtual
    bed.agents.start_one(host)
    bed.agents.wait_known(len(bed.agents.processes))
    file.ends(tmp_path)


def test_an_agent_leaves(bed: Mirrored, data: bytes, tmp_path: Path):
    file = Thirds(bed, "/leaves", data)
    host = bed.pipeline_of(file.path)[1].host
    bed.agents.processes[host].stop()
    bed.agents.command(host, "off")
    file.goes_on()
    file.ends(tmp_path)


def test_the_switch_is_restarted(bed: Mirrored, data: bytes, tmp_path: Path):
    file = Thirds(bed, "/switch", data)
    switch = bed.center.fabric.switch(TOPOLOGY, "s1")
    switch.kill()
    switch.start(openvswitch.ports(TOPOLOGY, "s1"))
    bed.center.controller.wait_converged()
    file.goes_on()
    file.ends(tmp_path)


@pytest.mark.parametrize("place", [1, 2, 3])
def test_a_datanode_stands_still(bed: Mirrored, data: bytes, tmp_path: Path, place: int):
    """No connection breaks; HDFS's own deadline finds it out, or it goes on before."""
    file = Thirds(bed, f"/still-{place}", data)
    process = bed.pipeline_of(file.path)[place - 1].process
    process.signal(signal.SIGSTOP)
    try:
        file.goes_on()
    finally:
        process.signal(signal.SIGCONT)
    file.ends(tmp_path)


def test_twenty_pipelines_at_once(bed: Mirrored, data: bytes, tmp_path: Path):
    folder, back = tmp_path / "twenty", tmp_path / "back"
    folder.mkdir()
    pieces = {f"{n:02d}": data[n * MIB : (n + 4) * MIB] for n in range(20)}
    for name, piece in pieces.items():
        (folder / name).write_bytes(piece)
    virtual, most = bed.count("virtual_bytes"), 0
    controller = bed.center.controller
    assert controller is not None
    put = bed.cluster.start_client(FSSHELL, "-D", "dfs.replication=3", "-put", "-t", "20", str(folder), "/", name="put")
    until = time.monotonic() + 300
    while put.running() and time.monotonic() < until:
        most = max(most, len(controller.mirrors()))
        time.sleep(0.1)
    assert put.wait(1) == 0, put.log.read_text(errors="replace")
    assert most > 10
    bed.cluster.client(FSSHELL, "-get", "/twenty", str(back), name="get-twenty")
    for name, piece in pieces.items():
        assert (back / name).read_bytes() == piece
        bed.assert_replicas(f"/twenty/{name}", piece)
    assert bed.count("virtual_bytes") > virtual
    bed.assert_all_ends()


# On a host: so many frames to an Ethernet address, marked as copies are, with TCP's beginning in them.
FORGE = """
import socket, sys
to, number, port = bytes.fromhex(sys.argv[1].replace(":", "")), int(sys.argv[2]), int(sys.argv[3])
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
link.bind(("eth0", 0))
ip = bytes.fromhex("4500003c000040004006000000000000") + bytes(4)
tcp = port.to_bytes(2, "big") * 2 + bytes(8) + bytes.fromhex("5010ffff00000000") + b"forged forged forged"
for _ in range(number):
    link.send(to + bytes.fromhex("024d52f0f0f00800") + ip + tcp)
"""
# On another: how many have come of the forger's frames and of copies, until standard input ends.
LOOK = """
import select, socket, sys
link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
link.bind(("eth0", 3))
print("looks", flush=True)
forged = copies = 0
while True:
    ready, _, _ = select.select([link, sys.stdin], [], [])
    if link in ready:
        frame = link.recv(256)
        is_forged, is_marked = b"forged" in frame, frame[6:9] == bytes.fromhex("024d52")
        forged += is_forged
        copies += is_marked and not is_forged
    elif sys.stdin in ready:
        break
print(forged, copies, flush=True)
"""


def test_strangers_marks_are_dropped(bed: Mirrored, data: bytes, tmp_path: Path):
    """A host that sends marked frames of its own: none comes to a replica, those of the switch all the while."""
    file = Thirds(bed, "/forged", data)
    target = bed.pipeline_of(file.path)[1].host
    shown = bed.stage.start("address", target, ["cat", "/sys/class/net/eth0/address"], stdout=subprocess.PIPE)
    assert shown.popen.stdout is not None
    address = shown.popen.stdout.read().decode().strip()
    looking = bed.stage.start(
        "look", target, [sys.executable, "-c", LOOK], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert looking.popen.stdin is not None
    assert looking.popen.stdout is not None
    assert looking.popen.stdout.readline() == b"looks\n"
    bed.stage.run("forger", "h6", [sys.executable, "-c", FORGE, address, "100", "9866"], timeout_s=30)
    file.goes_on()
    looking.popen.stdin.close()
    forged, copies = map(int, looking.popen.stdout.readline().split())
    assert forged == 0
    assert copies > 0
    file.ends(tmp_path)

"""What goes wrong while a block is mirrored: the file is exact on all replicas, and writes go on."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import MIB
from mirrored import TOPOLOGY, Mirrored, Writer, a_bed

from trunkline_lab.net import openvswitch

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
    bed.lose(share)
    bed.pipeline_of(file.path)[victim - 1].process.kill()
    file.goes_on()
    file.ends(tmp_path)
    bed.assert_all_ends()


@pytest.mark.parametrize("share", [0.001, 0.01, 0.05])
def test_copies_are_lost(bed: Mirrored, data: bytes, tmp_path: Path, share: float):
    file = Thirds(bed, f"/lost-{share}", data)
    virtual = bed.count("virtual_bytes")
    bed.lose(share)
    file.goes_on()
    file.ends(tmp_path)
    assert bed.count("virtual_bytes") > virtual


def test_all_copies_are_lost_for_a_while(bed: Mirrored, data: bytes, tmp_path: Path):
    file = Thirds(bed, "/gone", data)
    bed.lose(1)
    file.goes_on()
    bed.lose(0)
    file.ends(tmp_path)


def test_the_controller_is_killed_and_returns(bed: Mirrored, data: bytes, tmp_path: Path):
    file = Thirds(bed, "/controller", data)
    controller = bed.center.controller
    controller.process.kill()
    file.goes_on()
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


def test_eight_at_once(bed: Mirrored, data: bytes, tmp_path: Path):
    virtual = bed.count("virtual_bytes")
    bed.write_at_once(data, tmp_path)
    assert bed.count("virtual_bytes") > virtual
    bed.assert_all_ends()


def test_strangers_marks_are_dropped(bed: Mirrored, data: bytes, tmp_path: Path):
    """A host that sends marked frames of its own: no replica takes any."""
    file = Thirds(bed, "/forged", data)
    target = bed.pipeline_of(file.path)[1].host
    code = (
        "import socket; s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW); s.bind(('eth0', 0))\n"
        "frame = bytes.fromhex('ffffffffffff024d520000020800') + bytes.fromhex('45000028') + bytes(60)\n"
        "[s.send(frame) for _ in range(100)]"
    )
    unknown = bed.agents.counters([target]).get("mirror_unknown", 0)
    bed.stage.run("forger", "h6", ["python3", "-c", code], timeout_s=30)
    file.goes_on()
    assert bed.agents.counters([target]).get("mirror_unknown", 0) == unknown
    file.ends(tmp_path)

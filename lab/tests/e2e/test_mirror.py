"""Blocks of stock clients, mirrored by an Open vSwitch to unpatched DataNodes: bytes on disks and on links."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import MIB
from mirrored import LIMIT_S, Mirrored, Writer, a_bed

from trunkline_lab.cluster import FSSHELL
from trunkline_lab.procs import wait_until

pytestmark = pytest.mark.e2e

SIZE = 24 * MIB
FIRST = 64 << 10


@pytest.fixture(scope="module")
def cluster() -> Iterator[Mirrored]:
    with a_bed("mirror") as bed:
        yield bed


@pytest.fixture
def bed(cluster: Mirrored) -> Iterator[Mirrored]:
    yield cluster
    cluster.restore()


def test_copies_take_the_place_of_what_relays_would_send(bed: Mirrored, data: bytes) -> None:
    data = data[:SIZE]
    writer = Writer(bed, "/file", data[:FIRST])
    before, virtual = bed.meter.read(), bed.count("virtual_bytes")
    fallbacks = bed.agents.fallbacks()
    writer.flush(data[FIRST:])
    carried = bed.since(before)
    writer.finish()
    bed.assert_replicas("/file", data)
    first, second, third = (datanode.host for datanode in bed.pipeline_of("/file"))
    for relay in (first, second):
        assert carried.out(relay) < SIZE / 4, f"{relay}: {carried.as_json()}"
    for replica in (first, second, third):
        assert carried.into(replica) > SIZE
    assert bed.count("virtual_bytes") - virtual > 2 * SIZE * 3 / 4
    assert bed.agents.fallbacks() == fallbacks
    wait_until("the plug-ins' counters", lambda: bed.total("mirror_armed") > 0, LIMIT_S)
    bed.assert_all_ends()


def test_a_put_of_several_blocks_and_an_append(bed: Mirrored, data: bytes, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(data[:SIZE])
    virtual = bed.count("virtual_bytes")
    bed.cluster.put(source, "/blocks", properties={"dfs.blocksize": str(8 * MIB)})
    bed.cluster.client(FSSHELL, "-appendToFile", str(source), "/blocks", name="append")
    assert bed.read("/blocks", tmp_path) == 2 * data[:SIZE]
    bed.assert_whole("/blocks", 2 * data[:SIZE], tmp_path)
    assert bed.count("virtual_bytes") > virtual
    bed.assert_all_ends()


def test_lost_copies_are_sent_by_relays(bed: Mirrored, data: bytes) -> None:
    data = data[:SIZE]
    writer = Writer(bed, "/lossy", data[:FIRST])
    virtual, retransmitted = bed.count("virtual_bytes"), bed.count("retransmitted")
    bed.lose(0.02)
    writer.flush(data[FIRST:])
    writer.finish()
    bed.assert_replicas("/lossy", data)
    assert bed.count("virtual_bytes") > virtual
    assert bed.count("retransmitted") > retransmitted


def test_the_second_datanode_is_killed_in_mid_block(bed: Mirrored, data: bytes, tmp_path: Path) -> None:
    data = data[:SIZE]
    writer = Writer(bed, "/killed", data[:FIRST])
    writer.flush(data[FIRST : 8 * MIB])
    bed.pipeline_of("/killed")[1].process.kill()
    writer.flush(data[8 * MIB : 16 * MIB])
    writer.flush(data[16 * MIB :])
    writer.finish()
    bed.assert_whole("/killed", data, tmp_path)
    bed.assert_all_ends()


def test_a_hundred_bytes_at_a_time(bed: Mirrored, data: bytes, tmp_path: Path) -> None:
    count = 200
    writer = Writer(bed, "/flushed", data[:100])
    for number in range(1, count):
        writer.flush(data[100 * number : 100 * number + 100])
    writer.finish()
    bed.assert_replicas("/flushed", data[: 100 * count])

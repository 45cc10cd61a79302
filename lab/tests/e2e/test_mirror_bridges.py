"""Blocks of stock clients, mirrored by Linux bridges with the switch's eBPF program to unpatched DataNodes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import MIB
from mirrored import BRIDGES, LIMIT_S, Mirrored, Writer, a_bed

from trunkline_lab.mirror_agents import BridgeAgents
from trunkline_lab.procs import wait_until

pytestmark = pytest.mark.e2e

SIZE = 24 * MIB
FIRST = 64 << 10


@pytest.fixture(scope="module")
def cluster() -> Iterator[Mirrored]:
    with a_bed("mirror-bridges", BRIDGES) as bed:
        yield bed


@pytest.fixture
def bed(cluster: Mirrored) -> Iterator[Mirrored]:
    yield cluster
    cluster.restore()


def bridges_of(bed: Mirrored) -> BridgeAgents:
    assert bed.center.bridges is not None
    return bed.center.bridges


def test_copies_take_the_place_of_what_relays_would_send(bed: Mirrored, data: bytes) -> None:
    data = data[:SIZE]
    writer = Writer(bed, "/file", data[:FIRST])
    before, virtual = bed.meter.read(), bed.count("virtual_bytes")
    fallbacks, bridges = bed.agents.fallbacks(), bridges_of(bed).counters()
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
    counted = {name: count - bridges[name] for name, count in bridges_of(bed).counters().items()}
    assert counted["copied_bytes"] >= 2 * SIZE * 3 / 4
    assert counted["forged"] == 0
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


def test_bridges_copy_on_while_their_agents_are_gone_and_take_new_blocks_when_they_are_back(
    bed: Mirrored, data: bytes
) -> None:
    data = data[:SIZE]
    writer = Writer(bed, "/on", data[:FIRST])
    virtual = bed.count("virtual_bytes")
    for process in bridges_of(bed).processes.values():
        process.kill()
    writer.flush(data[FIRST:])
    writer.finish()
    bed.assert_replicas("/on", data)
    assert bed.count("virtual_bytes") - virtual > SIZE
    for bridge in list(bridges_of(bed).processes):
        bridges_of(bed).start_one(bridge)
    assert bed.center.controller is not None
    controller = bed.center.controller
    wait_until("bridges", lambda: len(controller.mirror_switches()) == len(BRIDGES.bridges), LIMIT_S)
    controller.wait_converged(len(BRIDGES.hosts))
    writer = Writer(bed, "/again", data[:FIRST])
    writer.flush(data[FIRST:])
    writer.finish()
    bed.assert_replicas("/again", data)
    bed.assert_all_ends()

"""Blocks are mirrored between hosts as Linux has them by itself, but for what `mirror doctor --fix` changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import MIB
from mirrored import Mirrored, a_bed

from trunkline_lab import planes
from trunkline_lab.cluster import FSSHELL, generic
from trunkline_lab.net import namespaces, tuning

pytestmark = pytest.mark.e2e

SIZE = 32 * MIB
PAUSE_S = 1.5  # half of what a window takes to open again that nobody told of
TRIES = 5  # whoever stands still does so for each block; a busy machine does not


@pytest.fixture(scope="module")
def bed() -> Iterator[Mirrored]:
    with a_bed("mirror-hosts", by_doctor=True) as bed:
        yield bed


def put(bed: Mirrored, data: bytes, tmp_path: Path, name: str, *, large: bool, least: float) -> None:
    """Puts a file, in packets of 512 KiB if `large`, which does not stand still; of the copies' bytes relays do not
    send `least`. On a busy machine copies may come later than a window can wait, so there are some tries."""
    seen = []
    for number in range(TRIES):
        pause_s, share = one_put(bed, data, tmp_path, f"{name}-{number}", large=large)
        if pause_s < PAUSE_S and share > least:
            return
        seen.append((round(pause_s, 2), round(share, 2)))
    raise AssertionError(f"{name}: of {TRIES} puts each stood still for {PAUSE_S} s or sent too much: {seen}")


def one_put(bed: Mirrored, data: bytes, tmp_path: Path, name: str, *, large: bool) -> tuple[float, float]:
    """For how long it stood still at most, and the share that relays did not send."""
    source, client = tmp_path / "source", bed.center.topology.roles.clients[0]
    source.write_bytes(data)
    before, fallbacks = bed.agents.counters(), bed.agents.fallbacks()
    words = generic({"dfs.replication": "3", **(planes.tuned_alike("ndn") if large else {})})
    writer = bed.cluster.start_client(FSSHELL, *words, "-put", str(source), f"/{name}", name=f"put-{name}", host=client)
    pause_s = bed.longest_pause_s(client, writer, len(data))
    assert writer.wait(60) == 0, writer.log.read_text(errors="replace")[-4000:]
    bed.assert_replicas(f"/{name}", data)
    counted = {counter: count - before.get(counter, 0) for counter, count in bed.agents.counters().items()}
    print(f"{name}: {pause_s:.2f} s, {counted}")
    assert bed.agents.fallbacks() == fallbacks
    return pause_s, counted["virtual_bytes"] / (2 * len(data))


@pytest.mark.parametrize("large", [True, False])
def test_relays_send_next_to_nothing(bed: Mirrored, data: bytes, tmp_path: Path, large: bool) -> None:
    put(bed, data[:SIZE], tmp_path, f"file-{large}", large=large, least=0.75)


def test_packets_that_are_longer_than_windows_do_not_stand_still(bed: Mirrored, data: bytes, tmp_path: Path) -> None:
    """Where nobody heeds the doctor. A DataNode's connections have the buffer of when it began to listen."""
    for host in bed.center.topology.roles.datanodes:
        with namespaces.inside(bed.center.fabric.namespace(host)):
            Path("/proc/sys/net/ipv4/tcp_rmem").write_text(tuning.DEFAULTS["tcp_rmem"])
    for datanode in bed.cluster.datanodes:
        assert datanode.process is not None
        datanode.process.kill()
    bed.restore()
    for number in range(2):
        put(bed, data[:SIZE], tmp_path, f"narrow-{number}", large=True, least=0.1)

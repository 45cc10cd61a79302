"""Blocks are mirrored between hosts as Linux has them by itself, but for what `trunkline mirror doctor --fix` changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import MIB
from mirrored import Mirrored, a_bed

from trunkline_lab import planes
from trunkline_lab.cluster import FSSHELL, generic

pytestmark = pytest.mark.e2e

SIZE = 32 * MIB
PAUSE_S = 1.0  # a third of what a window takes to open again that nobody told of


@pytest.fixture(scope="module")
def bed() -> Iterator[Mirrored]:
    with a_bed("mirror-hosts", by_doctor=True) as bed:
        yield bed


@pytest.mark.parametrize("packets", ["large", "hadoops"])
def test_a_put_does_not_stand_still(bed: Mirrored, data: bytes, tmp_path: Path, packets: str) -> None:
    data = data[:SIZE]
    source, path = tmp_path / "source", f"/{packets}"
    source.write_bytes(data)
    client = bed.center.topology.roles.clients[0]
    before, fallbacks, link = bed.agents.counters(), bed.agents.fallbacks(), bed.meter.read()
    chosen = planes.tuned_alike("ndn") if packets == "large" else {}
    words = generic({"dfs.replication": "3", **chosen})
    writer = bed.cluster.start_client(FSSHELL, *words, "-put", str(source), path, name=f"put-{packets}", host=client)
    pause_s = bed.longest_pause_s(client, writer, SIZE)
    assert writer.wait(60) == 0, writer.log.read_text(errors="replace")[-4000:]
    bed.assert_replicas(path, data)
    carried, counted = bed.since(link), {k: n - before.get(k, 0) for k, n in bed.agents.counters().items()}
    print(f"{packets}: {pause_s:.2f} s, {counted}")
    assert pause_s < PAUSE_S, counted
    assert counted["virtual_bytes"] > SIZE, counted
    assert bed.agents.fallbacks() == fallbacks
    for relay in (datanode.host for datanode in bed.pipeline_of(path)[:2]):
        assert carried.out(relay) < SIZE, f"{relay}: {carried.as_json()}"

"""Ordinary use on real daemons: append, many writers at once, small files, several blocks."""

import json
import subprocess

import pytest
from conftest import MIB

from trunkline_lab import paths, replicas
from trunkline_lab.cluster import FSSHELL

pytestmark = pytest.mark.e2e


@pytest.fixture
def bed(shared_bed):
    """None of these tests harms the cluster: one serves all."""
    return shared_bed


def test_append(bed, data, tmp_path):
    source = tmp_path / "source"
    source.write_bytes(data[: 5 * MIB + 123])
    bed.cluster.put(source, "/appended")
    source.write_bytes(data[5 * MIB + 123 : 9 * MIB])
    bed.cluster.client(FSSHELL, "-appendToFile", str(source), "/appended", name="append")
    bed.assert_whole("/appended", data[: 9 * MIB], tmp_path)
    bed.assert_carried()


def test_eight_writers_at_once(bed, data, tmp_path):
    bed.write_at_once(data, tmp_path)
    bed.assert_carried()


def test_files_of_all_sizes_and_several_blocks(bed, data, tmp_path):
    sizes = [0, 1, 511, 512, 513, 64511, 64512, 64513, 65536, 3 * MIB + 7]
    tree = tmp_path / "tree"
    tree.mkdir()
    for size in sizes:
        (tree / f"size-{size}").write_bytes(data[:size])
    bed.cluster.client(FSSHELL, "-D", "dfs.blocksize=1048576", "-put", str(tree), "/", name="put-tree")
    bed.cluster.client(FSSHELL, "-get", "/tree", str(tmp_path / "back"), name="get-tree")
    for size in sizes:
        assert (tmp_path / "back" / f"size-{size}").read_bytes() == data[:size]
    assert len(replicas.blocks(bed.cluster, f"/tree/size-{3 * MIB + 7}")) == 4


@pytest.mark.parametrize(
    ("packet_bytes", "segment_bytes"),
    [(260097, 64512), (131072, 64512), (520161, 516096), (1040289, 1032192)],
    ids=["whole-segments", "other-cuts", "one-segment", "greatest-segment"],
)
def test_large_packets(bed, data, tmp_path, packet_bytes, segment_bytes):
    source = tmp_path / "source"
    source.write_bytes(data[: 20 * MIB + 77])
    inline = bed.total("inline_bodies")
    target = f"/packets-{packet_bytes}"
    sized = ["-D", "dfs.replication=3", "-D", f"dfs.client-write-packet-size={packet_bytes}"]
    # DataNodes serve the block in segments of their own setting: readers want none of those that a cache has.
    sized += ["-D", f"trunkline.ndn.segment.bytes={segment_bytes}"]
    sized += ["-D", "trunkline.ndn.inline.bytes=0"]  # else a block's short end
    bed.cluster.client(FSSHELL, *sized, "-put", str(source), target, name="put-large")
    bed.assert_whole(target, source.read_bytes(), tmp_path)
    bed.assert_carried()
    assert bed.total("inline_bodies") == inline


def test_what_caches_could_have_served_is_read_from_datanodes_logs(bed, data, tmp_path):
    source, before = tmp_path / "source", cache_potential(bed)
    source.write_bytes(data[: 5 * MIB])
    bed.cluster.put(source, "/read-twice")
    for copy in ("first", "second"):
        over_tcp = ["-D", "trunkline.transport=tcp", "-get", "/read-twice", str(tmp_path / copy)]
        bed.cluster.client(FSSHELL, *over_tcp, name=f"get-{copy}")
    after = cache_potential(bed)
    assert after["reads"] - before["reads"] == 2
    assert after["network_bytes"] - before["network_bytes"] == 2 * 5 * MIB
    assert after["unified_bytes"] - before["unified_bytes"] == 5 * MIB, "all of the second read was read before"


def cache_potential(bed) -> dict[str, int]:
    """What `trunkline cache-potential` makes of the logs of all DataNodes."""
    logs = [str(datanode.process.log) for datanode in bed.cluster.datanodes]
    command = [str(paths.TRUNKLINE), "cache-potential", "--json", *logs]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert found["malformed_lines"] == 0
    return found["potential"]["all"]


def test_a_reader_that_stops_early_leaves_nothing_hanging(bed, data, tmp_path):
    source = tmp_path / "source"
    source.write_bytes(data)
    bed.cluster.put(source, "/left")
    head = bed.cluster.start_client(FSSHELL, "-head", "/left", name="head", stdout=subprocess.PIPE)
    assert head.popen.stdout is not None
    assert head.popen.stdout.read() == data[:1024]
    assert head.wait(60) == 0

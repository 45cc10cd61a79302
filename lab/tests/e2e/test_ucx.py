"""What only UCX has, on real daemons that share memory: bounded memory, connections that are kept, hosts without it.

What goes wrong in mid-write is in test_faults.py, for all planes.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import MIB, SlowWriter, in_mid_write, under_way

from trunkline_lab import planes, replicas
from trunkline_lab.cluster import FSSHELL
from trunkline_lab.procs import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.planes("ucx")]


def test_many_writers_with_one_worker_and_hardly_any_memory(make_bed, data, tmp_path):
    extra = {
        "trunkline.ucx.workers": "1",
        "trunkline.ucx.pool.bytes": str(4 * MIB),
        "trunkline.ucx.message.bytes": "262144",
    }
    bed = make_bed(extra=extra)
    bed.write_at_once(data, tmp_path)
    bed.assert_carried()
    if bed.plane.name == "ucx":
        assert bed.total("ucx_pool_waits") > 0, "there was memory enough for all"
    for host in bed.cluster.hosts.values():
        for record in planes.stats(bed.cluster.directory, host):
            assert record.get("ucx_registered_bytes", 0) <= 4 * MIB


def test_a_datanode_without_ucx_is_served_over_stock_tcp(make_bed, data, tmp_path):
    """With four replicas it is in every pipeline, between DataNodes that have UCX, before, or behind them."""
    bed = make_bed(without_plugin=(1,))
    sources = [tmp_path / "first", tmp_path / "second"]
    for source in sources:
        source.write_bytes(data[: 8 * MIB])
    words = ["-D", "dfs.replication=4", "-put", *map(str, sources), "/"]
    bed.cluster.client(FSSHELL, *words, name="put")
    for source in sources:
        bed.assert_whole(f"/{source.name}", data[: 8 * MIB], tmp_path, replication=4)
    bed.assert_carried()
    if bed.plane.name == "ucx":
        wait_until("the fallback counter", lambda: bed.total("fallback.no_plugin") >= 2, 5)
        said = [p.log.read_text(errors="replace").count("by stock TCP instead of ucx") for p in bed.stage.processes]
        assert sum(said) > 0
        assert max(said) == 1, "each process says it once, not at every block"


def tcp_between(one: int, other: int) -> list[tuple[str, str]]:
    """Ends, `one`'s first, of the TCP connections between two processes."""
    said = subprocess.run(["ss", "-Htnp", "state", "established"], capture_output=True, text=True, check=True).stdout
    ends: dict[int, dict[str, str]] = {one: {}, other: {}}
    for line in said.splitlines():
        _, _, local, remote, *owners = line.split()
        for pid, found in ends.items():
            if re.search(rf"pid={pid}\b", " ".join(owners)):
                found[local] = remote
    return [(local, remote) for local, remote in ends[one].items() if ends[other].get(remote) == local]


@pytest.mark.skipif(os.geteuid() != 0, reason="destroying a socket of another process needs root")
def test_ucx_loses_its_connection_in_mid_write(make_bed, data, tmp_path):
    """Both processes live on, as do their other sockets: in the middle of a block UCX reports an error."""
    bed = make_bed(extra={"trunkline.ucx.tls": "tcp"})
    writer = in_mid_write(bed, data)
    client, first = writer.process.pid, bed.pipeline("/file")[0].process.pid
    connections = tcp_between(client, first)
    assert connections, "UCX goes over TCP here"
    for local, remote in connections:
        subprocess.run(["ss", "-K", "src", local, "dst", remote], capture_output=True, check=True)
    if set(connections) & set(tcp_between(client, first)):
        pytest.skip("this kernel does not let sockets be destroyed (CONFIG_INET_DIAG_DESTROY)")
    writer.write(data[24 * MIB :])
    writer.finish()
    bed.assert_whole("/file", data, tmp_path)
    bed.assert_carried()
    bed.assert_all_alive()
    if bed.plane.name == "ucx":
        assert bed.total("ucx_endpoints_failed") > 0


def test_a_datanode_is_restarted_while_connections_to_it_are_pooled(bed, data, tmp_path):
    """One client, many blocks: it has an endpoint to every DataNode when one of them comes back elsewhere."""
    arguments = ["-D", "dfs.blocksize=1048576", "-D", "dfs.replication=3", "-put", "-d", "-", "/file"]
    client = bed.cluster.start_client(FSSHELL, *arguments, name="slow-put", stdin=subprocess.PIPE)
    client.popen.stdin.write(data[: 12 * MIB])
    client.popen.stdin.flush()
    wait_until("blocks", lambda: len(replicas.blocks(bed.cluster, "/file")) >= 8, 60)
    restarted = bed.cluster.datanodes[0]
    restarted.process.kill()
    bed.cluster.start_datanode(restarted)
    client.popen.stdin.write(data[12 * MIB : 24 * MIB])
    client.popen.stdin.flush()
    bed.cluster.wait_live(4)
    client.popen.stdin.write(data[24 * MIB :])
    client.popen.stdin.close()
    assert client.wait(120) == 0, client.log.read_text(errors="replace")[-4000:]
    bed.assert_whole("/file", data, tmp_path)
    bed.assert_carried()


def test_many_small_blocks_and_killed_clients_leave_nothing(make_bed, data, tmp_path):
    """A thousand blocks go over connections that are made once, and all is given back when nobody writes any more."""
    small = 4096
    workers, idle_ms = 1, 5000
    bed = make_bed(
        extra={
            "dfs.namenode.fs-limits.min-block-size": "0",
            "trunkline.ucx.workers": str(workers),
            "trunkline.ucx.idle.ms": str(idle_ms),
        }
    )
    source = tmp_path / "source"
    source.write_bytes(data[: 1000 * small])
    bed.cluster.client(FSSHELL, "-D", f"dfs.blocksize={small}", "-put", str(source), "/small", name="put")
    assert bed.read("/small", tmp_path) == source.read_bytes()
    bed.assert_carried()
    before = {datanode.host: held(datanode.process.pid) for datanode in bed.cluster.datanodes}
    for ten in range(10):
        paths = [f"/killed-{ten}{number}" for number in range(10)]
        writers = [SlowWriter(bed.cluster, path) for path in paths]
        for writer in writers:
            writer.write(data[: 3 * MIB])
        for path, writer in zip(paths, writers, strict=True):
            under_way(bed, path, MIB)
            writer.process.kill()
    if bed.plane.name != "ucx":
        return
    (writer,) = (record for record in planes.stats(bed.cluster.directory, "client") if record["ucx_writes"] >= 1000)
    assert writer["ucx_connects"] <= len(bed.cluster.datanodes) * workers, "one for each DataNode, none at a block"
    floor = ("ucx_registered_bytes", "ucx_pooled_bytes_in_use", "ucx_endpoints_open", "ucx_streams_open")
    for datanode in bed.cluster.datanodes:
        wait_until(
            f"{datanode.host} has given all back",
            lambda host=datanode.host: all(bed.transport(host)[counter] == 0 for counter in floor),
            40,
            pause_s=0.5,
        )
        assert bed.transport(datanode.host)["ucx_receives"] > 0
        files, threads = held(datanode.process.pid)
        # Threads of stock code's own pools come and go; a hundred clients had hundreds of connections.
        assert files <= before[datanode.host][0] + 20
        assert threads <= before[datanode.host][1] + 20


def held(pid: int) -> tuple[int, int]:
    """Descriptors and threads of a process."""
    process = Path("/proc") / str(pid)
    return len(list((process / "fd").iterdir())), len(list((process / "task").iterdir()))

"""What only UCX has, on real daemons that share memory: bounded memory, connections that are kept, hosts without it.

What goes wrong in mid-write is in test_faults.py, for all planes; hosts that lack UCX alone are in test_without_ucx.py.
"""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import MIB, SlowReader, SlowWriter, in_mid_write, under_way

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
        wait_until("the lost connection's counter", lambda: bed.total("ucx_lost") > 0, 5)
        assert "data connection by UCX: lost:" in bed.log_of("client")


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
    rounds, at_once = 3, 5
    for turn in range(rounds):
        paths = [f"/killed-{turn}-{number}" for number in range(at_once)]
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
            lambda host=datanode.host: all(bed.transport(host).get(counter) == 0 for counter in floor),
            40,
            pause_s=0.5,
        )
        assert bed.transport(datanode.host)["ucx_receives"] > 0
        files, threads = held(datanode.process.pid)
        # Threads of stock code's own pools come and go; the killed clients had several connections each.
        assert files <= before[datanode.host][0] + rounds * at_once // 2
        assert threads <= before[datanode.host][1] + rounds * at_once // 2


def held(pid: int) -> tuple[int, int]:
    """Descriptors and threads of a process."""
    process = Path("/proc") / str(pid)
    return len(list((process / "fd").iterdir())), len(list((process / "task").iterdir()))


def of_datanodes(bed, counter):
    """A counter of each DataNode, by host; 0 where nothing has been counted yet."""
    return {datanode.host: bed.transport(datanode.host).get(counter, 0) for datanode in bed.cluster.datanodes}


def test_a_replica_that_is_missing_is_copied_over_ucx(bed, data, tmp_path):
    """No client has a part in it: one DataNode writes to another what the NameNode wants to be there once more."""
    source = tmp_path / "source"
    source.write_bytes(data)
    bed.cluster.put(source, "/file", replication=2)
    bed.assert_whole("/file", data, tmp_path, replication=2)
    counters = ("ucx_writes", "ucx_receives", "ucx_bytes_received")
    if bed.plane.name == "ucx":
        wait_until("what the put counted", lambda: sum(of_datanodes(bed, "ucx_receives").values()) == 2, 10)
        wait_until("no stream", lambda: not any(of_datanodes(bed, "ucx_streams_open").values()), 10)
    before = {counter: sum(of_datanodes(bed, counter).values()) for counter in counters}
    bed.cluster.client(FSSHELL, "-setrep", "-w", "3", "/file", name="setrep")
    bed.assert_whole("/file", data, tmp_path, replication=3)
    if bed.plane.name != "ucx":
        return
    for counter, least in zip(counters, (1, 1, len(data)), strict=True):
        wait_until(
            f"{counter} of the copy",
            lambda name=counter, least=least: sum(of_datanodes(bed, name).values()) >= before[name] + least,
            10,
        )
    assert bed.total("fallback") == 0


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
def test_the_datanode_that_is_read_from_is_lost_in_mid_read(make_bed, data, tmp_path, how):
    """The reader goes on at another replica, over UCX again; a stopped one is found out by HDFS's own time-out."""
    bed = make_bed(extra={"dfs.client.socket-timeout": "3000"})
    if bed.plane.name != "ucx":
        pytest.skip("the counters of UCX tell which DataNode is read from")
    source = tmp_path / "source"
    source.write_bytes(data)
    bed.cluster.put(source, "/file")
    wait_until("all that the put counted", lambda: sum(of_datanodes(bed, "ucx_receives").values()) == 3, 10)
    wait_until("no stream", lambda: not any(of_datanodes(bed, "ucx_streams_open").values()), 10)
    reader = SlowReader(bed.cluster, "/file")
    first = reader.read(8 * MIB)
    wait_until("a stream", lambda: any(of_datanodes(bed, "ucx_streams_open").values()), 10)
    (victim,) = (d for d in bed.cluster.datanodes if of_datanodes(bed, "ucx_streams_open")[d.host])
    victim.process.signal(how)
    try:
        assert first + reader.finish() == data
    finally:
        if how == signal.SIGSTOP:
            victim.process.signal(signal.SIGCONT)
    assert bed.transport("client")["ucx_reads"] >= 2, "it was in mid-read"
    if how == signal.SIGSTOP:
        bed.assert_all_alive()

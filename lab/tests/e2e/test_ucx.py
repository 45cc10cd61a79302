"""The kill matrix over UCX, on real daemons that share memory: the bytes come out right and nothing hangs."""

import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from conftest import MIB, Bed, SlowWriter, a_bed, under_way

from trunkline_lab import planes, replicas
from trunkline_lab.cluster import FSSHELL
from trunkline_lab.procs import wait_until

pytestmark = pytest.mark.e2e

DEBUG_ADMIN = "org.apache.hadoop.hdfs.tools.DebugAdmin"


@pytest.fixture(scope="module")
def ucx_here() -> None:
    """Skips where the plug-in finds no UCX, with its own words."""
    if lack := planes.ucx_missing():
        pytest.skip(f"no UCX here: {lack}")


@pytest.fixture
def make_bed(ucx_here: None, request: pytest.FixtureRequest) -> Iterator[Callable[..., Bed]]:
    name = request.node.name.replace("[", "-").replace("]", "")
    with ExitStack() as stack:
        plane = "tcp" if request.config.getoption("plane") == "tcp" else "ucx"
        yield lambda **how: stack.enter_context(a_bed(name, plane, **how))


@pytest.fixture
def bed(make_bed: Callable[..., Bed]) -> Bed:
    return make_bed()


def assert_by_ucx(bed: Bed) -> None:
    """Blocks were written and taken by UCX."""
    if bed.plane.name == "ucx":
        wait_until("counters", lambda: bed.total("ucx_writes") > 0 and bed.total("ucx_receives") > 0, 5)


@pytest.mark.parametrize("victim", [1, 2, 3])
def test_a_datanode_of_the_pipeline_is_killed_in_mid_write(bed, data, tmp_path, victim):
    writer = SlowWriter(bed.cluster, "/file")
    writer.write(data[: 24 * MIB])
    under_way(bed, "/file", 8 * MIB)
    bed.pipeline("/file")[victim - 1].process.kill()
    writer.write(data[24 * MIB :])
    writer.finish()
    bed.assert_whole("/file", data, tmp_path)
    assert_by_ucx(bed)


def test_the_client_is_killed_in_mid_write(bed, data, tmp_path):
    writer = SlowWriter(bed.cluster, "/file")
    writer.write(data[: 24 * MIB])
    under_way(bed, "/file", 8 * MIB)
    writer.process.kill()
    bed.cluster.client(DEBUG_ADMIN, "recoverLease", "-path", "/file", "-retries", "20", name="recover")
    kept = bed.read("/file", tmp_path)
    assert len(kept) >= 8 * MIB
    assert data.startswith(kept)
    bed.assert_whole("/file", kept, tmp_path, replication=1)


def test_a_datanode_is_stopped_in_mid_write(make_bed, data, tmp_path):
    """No connection breaks: HDFS's own deadlines must find it out, 3 s and what stock code adds to them."""
    bed = make_bed(extra={"dfs.client.socket-timeout": "3000"})
    writer = SlowWriter(bed.cluster, "/file")
    writer.write(data[: 24 * MIB])
    under_way(bed, "/file", 8 * MIB)
    stopped = bed.pipeline("/file")[1].process
    stopped.signal(signal.SIGSTOP)
    try:
        writer.write(data[24 * MIB :])
        writer.finish(60)
        bed.assert_whole("/file", data, tmp_path, replication=2)
    finally:
        stopped.signal(signal.SIGCONT)
    assert_by_ucx(bed)


def test_many_writers_with_one_worker_and_hardly_any_memory(make_bed, data, tmp_path):
    extra = {
        "trunkline.ucx.workers": "1",
        "trunkline.ucx.pool.bytes": str(4 * MIB),
        "trunkline.ucx.message.bytes": "262144",
    }
    bed = make_bed(extra=extra)
    sources = []
    for number in range(8):
        source = tmp_path / f"file-{number}"
        source.write_bytes(data[number * 5 * MIB : number * 5 * MIB + 6 * MIB + number])
        sources.append(source)
    bed.cluster.client(FSSHELL, "-mkdir", "/many", name="mkdir")
    writers = [
        bed.cluster.start_client(FSSHELL, "-put", str(source), f"/many/{source.name}", name=f"put-{source.name}")
        for source in sources
    ]
    for writer in writers:
        assert writer.wait(180) == 0, writer.log.read_text(errors="replace")
    copies = tmp_path / "copies"
    copies.mkdir()
    bed.cluster.get("/many/*", copies)
    for source in sources:
        assert (copies / source.name).read_bytes() == source.read_bytes()
    assert_by_ucx(bed)
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
    assert_by_ucx(bed)
    if bed.plane.name == "ucx":
        wait_until("the fallback counter", lambda: bed.total("fallback.no_plugin") >= 2, 5)
        said = [p.log.read_text(errors="replace").count("by stock TCP instead of ucx") for p in bed.stage.processes]
        assert sum(said) > 0
        assert max(said) == 1, "each process says it once, not at every block"


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
    assert_by_ucx(bed)


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
    assert_by_ucx(bed)
    writers = [SlowWriter(bed.cluster, f"/killed-{number}") for number in range(2)]
    for writer in writers:
        writer.write(data[: 12 * MIB])
    for number, writer in enumerate(writers):
        under_way(bed, f"/killed-{number}", 4 * MIB)
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

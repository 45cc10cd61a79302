"""What goes wrong in mid-write and mid-read, on real daemons: the bytes come out right, and the logs say how."""

import contextlib
import signal
import time

import pytest
from conftest import MIB, FlushingWriter, SlowReader, SlowWriter, in_mid_write, under_way

from trunkline_lab import planes, replicas
from trunkline_lab.cluster import FSSHELL
from trunkline_lab.procs import wait_until

pytestmark = pytest.mark.e2e

DEBUG_ADMIN = "org.apache.hadoop.hdfs.tools.DebugAdmin"


BOTH = pytest.mark.planes("ndn", "ucx")
STOPPED = pytest.mark.planes("ucx")

# Of a pipeline's DataNodes the one in the middle, which receives and relays; the others in `make test-all`.
EACH = [2, *(pytest.param(place, marks=pytest.mark.matrix) for place in (1, 3))]

# What a stopped process is found out by: HDFS's own time-out, and the 5 s a hop that stock code adds to it.
IMPATIENT = {"dfs.client.socket-timeout": "3000", "trunkline.ucx.idle.ms": "5000"}


def recovered(bed) -> set[str]:
    """The hosts whose logs tell of a pipeline's recovery, in which it gets a new generation stamp."""
    said = {"namenode": "updatePipeline(", "client": "Error Recovery for"}
    said |= {datanode.host: "Recover RBW replica" for datanode in bed.cluster.datanodes}
    return {host for host, recovery in said.items() if recovery in bed.log_of(host)}


@BOTH
@pytest.mark.parametrize("victim", EACH)
def test_a_datanode_of_the_pipeline_is_killed_in_mid_write(bed, data, tmp_path, victim):
    writer = in_mid_write(bed, data)
    bed.pipeline("/file")[victim - 1].process.kill()
    writer.write(data[24 * MIB :])
    writer.finish()
    bed.assert_whole("/file", data, tmp_path)
    bed.assert_carried()
    assert {"namenode", "client"} < recovered(bed), "and a DataNode that lives"


@BOTH
def test_the_client_is_killed_in_mid_write(bed, data, tmp_path):
    writer = in_mid_write(bed, data)
    writer.process.kill()
    recover_lease(bed)
    kept = bed.read("/file", tmp_path)
    assert len(kept) >= 8 * MIB
    assert data.startswith(kept)
    bed.assert_whole("/file", kept, tmp_path, replication=1)


@STOPPED
@pytest.mark.parametrize("victim", EACH)
def test_a_datanode_of_the_pipeline_is_stopped_in_mid_write(make_bed, data, tmp_path, victim):
    """No connection breaks: HDFS's own deadlines must find it out."""
    bed = make_bed(extra=IMPATIENT)
    writer = in_mid_write(bed, data)
    stopped = bed.pipeline("/file")[victim - 1].process
    stopped.signal(signal.SIGSTOP)
    try:
        writer.write(data[24 * MIB :])
        writer.finish(60)
        bed.assert_whole("/file", data, tmp_path, replication=2)
    finally:
        stopped.signal(signal.SIGCONT)
    bed.assert_carried()
    bed.assert_all_alive()


@STOPPED
def test_the_client_is_stopped_in_mid_write(make_bed, data, tmp_path):
    """The DataNodes give it up and keep what they have; awake again, it can't add to a file that is not its own."""
    bed = make_bed(extra=IMPATIENT)
    writer = in_mid_write(bed, data)
    writer.process.signal(signal.SIGSTOP)
    try:
        if bed.plane.name == "ucx":
            hosts = [datanode.host for datanode in bed.cluster.datanodes]

            def open_streams() -> list[int | None]:  # None until a DataNode has written down that it uses UCX
                return [bed.transport(host).get("ucx_streams_open") for host in hosts]

            wait_until("no stream", lambda: open_streams() == [0] * len(hosts), 60, pause_s=0.5)
        recover_lease(bed)
        kept = bed.read("/file", tmp_path)
        assert len(kept) >= 8 * MIB
        assert data.startswith(kept)
    finally:
        writer.process.signal(signal.SIGCONT)
    with contextlib.suppress(BrokenPipeError):
        writer.write(data[24 * MIB :])
        writer.process.popen.stdin.close()
    assert writer.process.wait(60) != 0
    bed.assert_whole("/file", kept, tmp_path, replication=1)
    bed.assert_carried()
    bed.assert_all_alive()


def recover_lease(bed) -> None:
    """Ends /file without its writer."""
    bed.cluster.client(DEBUG_ADMIN, "recoverLease", "-path", "/file", "-retries", "20", name="recover")


def test_the_router_is_killed_and_restarted_in_mid_write(bed, data, tmp_path):
    if bed.router is None:
        pytest.skip("stock TCP has no router")
    writer = SlowWriter(bed.cluster, "/file")
    writer.write(data[: 16 * MIB])
    under_way(bed, "/file", 8 * MIB)
    bed.router.kill()
    writer.write(data[16 * MIB : 18 * MIB])
    time.sleep(2)
    bed.router.start()
    writer.write(data[18 * MIB :])
    writer.finish()
    bed.assert_whole("/file", data, tmp_path)
    bed.assert_carried()
    assert_says_how(bed)


def test_the_router_is_killed_and_restarted_in_mid_read(bed, data, tmp_path):
    if bed.router is None:
        pytest.skip("stock TCP has no router")
    source = tmp_path / "source"
    source.write_bytes(data)
    bed.cluster.put(source, "/file")
    reader = SlowReader(bed.cluster, "/file")
    first = reader.read(8 * MIB)
    bed.router.kill()
    time.sleep(2)
    bed.router.start()
    assert first + reader.finish() == data
    assert bed.transport("client")["named_reads"] > 0
    assert_says_how(bed)


def assert_says_how(bed) -> None:
    """Counters tell whether asking again or stock TCP carried the rest, and the log that the router was away."""
    assert "face is down" in bed.log_of("client")
    assert bed.pulls("retransmitted") + bed.pulls("reexpressed") + bed.total("fallback") > 0


OUTAGE_S = 30  # longer than HDFS's time-outs here, and than a body may take to come by name


def test_the_router_is_away_for_30_s(make_bed, data, tmp_path):
    """The file being written goes on inline, in the same pipeline; who comes anew goes by stock TCP at once."""
    bed = make_bed(datanodes=3)
    if bed.router is None:
        pytest.skip("stock TCP has no router")
    writer = FlushingWriter(bed.cluster, "/file")
    writer.flush(data[: 8 * MIB])
    began = time.monotonic()
    bed.router.kill()
    writer.flush(data[8 * MIB : 16 * MIB])
    source = tmp_path / "source"
    source.write_bytes(data)
    put = bed.cluster.put(source, "/other")
    bed.assert_whole("/other", data, tmp_path)
    writer.flush(data[16 * MIB : 24 * MIB])
    time.sleep(max(0.0, began + OUTAGE_S - time.monotonic()))
    writer.flush(data[24 * MIB : 32 * MIB])
    bed.router.start()
    writer.flush(data[32 * MIB : 40 * MIB])
    writer.finish()
    bed.assert_whole("/file", data[: 40 * MIB], tmp_path)
    assert_pipeline_kept(bed, "/file")
    assert "the rest of the block is sent on the control connection" in bed.log_of("client")
    assert "requested on the control connection" in "".join(bed.log_of(d.host) for d in bed.cluster.datanodes)
    assert bed.total("inline_asked") > 0
    assert bed.total("fallback.write_stalled") == 1
    bed.assert_fell_back()
    assert "by stock TCP instead of ndn" in put.log.read_text(errors="replace")
    assert bed.of_process(put)["named_writes"] == 0


def assert_pipeline_kept(bed, path) -> None:
    """The one block of `path` has the generation stamp that it was given out with, on the DataNodes it was given."""
    (block,) = replicas.blocks(bed.cluster, path)
    assert block.versioned in bed.fsck(path)
    assert {r.host for r in replicas.of_block(bed.cluster, block.name)} == {d.host for d in block.pipeline}
    assert not recovered(bed)


def test_datanodes_without_the_plugin_are_served_over_stock_tcp(make_bed, data, tmp_path):
    bed = make_bed(without_plugin=(1, 2))
    source = tmp_path / "source"
    source.write_bytes(data)
    bed.cluster.put(source, "/file")
    bed.assert_whole("/file", data, tmp_path)
    bed.assert_fell_back()


ENCRYPTED = {"dfs.block.access.token.enable": "true", "dfs.encrypt.data.transfer": "true"}


def test_encrypted_blocks_are_written_over_stock_tcp_without_the_resolver(make_bed, data, tmp_path):
    """Readers ask nobody whether a connection is trusted: they need no resolver."""
    bed = make_bed(extra=ENCRYPTED)
    source = tmp_path / "source"
    source.write_bytes(data[: 8 * MIB])  # stock HDFS encrypts 5 MB in a second
    bed.cluster.put(source, "/file")
    bed.assert_whole("/file", source.read_bytes(), tmp_path)
    bed.assert_fell_back()
    assert bed.total("named_writes") == 0
    if bed.plane.name == "ndn":
        assert bed.total("named_reads") > 0


@pytest.mark.parametrize("victim", [0, *EACH])
def test_encrypted_blocks_are_written_and_read_by_name(make_bed, data, tmp_path, victim):
    """Also where a DataNode of the pipeline is killed in mid-write."""
    suite = {"dfs.encrypt.data.transfer.cipher.suites": "AES/CTR/NoPadding"}
    bed = make_bed(extra=ENCRYPTED | suite | planes.RESOLVER)
    writer = in_mid_write(bed, data)
    if victim:
        bed.pipeline("/file")[victim - 1].process.kill()
    writer.write(data[24 * MIB :])
    writer.finish()
    bed.assert_whole("/file", data, tmp_path)
    bed.assert_carried()
    if bed.plane.name == "ndn":
        assert bed.total("named_reads") > 0
        assert bed.total("secured_connections") > 0
        assert bed.total("handshakes_refused") == 0


def test_a_wrong_setting_is_refused_with_its_name_and_the_fix(make_bed, data, tmp_path):
    bed = make_bed()
    if bed.router is None:
        pytest.skip("stock TCP has no settings of ours")
    source = tmp_path / "source"
    source.write_bytes(data[:MIB])
    wrong = [
        ("trunkline.ndn.rot=/hadoop", "did you mean trunkline.ndn.root"),
        ("trunkline.ndn.face=tpc://router:6363", "trunkline.ndn.face"),
        ("trunkline.ndn.root=hadoop/%zz", "trunkline.ndn.root"),
    ]
    put = ["-put", str(source), "/file"]
    clients = [bed.cluster.start_client(FSSHELL, "-D", setting, *put, name="wrong") for setting, _ in wrong]
    for client, (_, said) in zip(clients, wrong, strict=True):
        assert client.wait(60) != 0
        assert said in client.log.read_text(errors="replace")

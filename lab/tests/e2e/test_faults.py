"""What goes wrong in mid-write and mid-read, on real daemons: the bytes come out right, and the logs say how."""

import time

import pytest
from conftest import MIB, SlowReader, SlowWriter, under_way

from trunkline_lab.cluster import FSSHELL

pytestmark = pytest.mark.e2e

DEBUG_ADMIN = "org.apache.hadoop.hdfs.tools.DebugAdmin"


@pytest.mark.parametrize("victim", [1, 2, 3])
def test_a_datanode_of_the_pipeline_is_killed_in_mid_write(bed, data, tmp_path, victim):
    writer = SlowWriter(bed.cluster, "/file")
    writer.write(data[: 24 * MIB])
    under_way(bed, "/file", 8 * MIB)
    bed.pipeline("/file")[victim - 1].process.kill()
    writer.write(data[24 * MIB :])
    writer.finish()
    bed.assert_whole("/file", data, tmp_path)
    bed.assert_named()


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
    bed.assert_named()
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


def test_the_router_stays_away(bed, data, tmp_path):
    if bed.router is None:
        pytest.skip("stock TCP has no router")
    bed.router.kill()
    source = tmp_path / "source"
    source.write_bytes(data)
    bed.cluster.put(source, "/file")
    bed.assert_whole("/file", data, tmp_path)
    bed.assert_fell_back()
    assert bed.total("named_writes") == 0


def test_datanodes_without_the_plugin_are_served_over_stock_tcp(make_bed, data, tmp_path):
    bed = make_bed(without_plugin=(1, 2))
    source = tmp_path / "source"
    source.write_bytes(data)
    bed.cluster.put(source, "/file")
    bed.assert_whole("/file", data, tmp_path)
    bed.assert_fell_back()


def test_encrypted_transfer_goes_over_stock_tcp(make_bed, data, tmp_path):
    bed = make_bed(extra={"dfs.block.access.token.enable": "true", "dfs.encrypt.data.transfer": "true"})
    source = tmp_path / "source"
    source.write_bytes(data)
    bed.cluster.put(source, "/file")
    bed.assert_whole("/file", data, tmp_path)
    bed.assert_fell_back()
    assert bed.total("named_writes") + bed.total("named_reads") == 0


def test_a_wrong_setting_is_refused_with_its_name_and_the_fix(make_bed, data, tmp_path):
    bed = make_bed()
    if bed.router is None:
        pytest.skip("stock TCP has no settings of ours")
    source = tmp_path / "source"
    source.write_bytes(data[:MIB])
    for setting, value, said in [
        ("trunkline.ndn.rot", "/hadoop", "did you mean trunkline.ndn.root"),
        ("trunkline.ndn.face", "tpc://router:6363", "trunkline.ndn.face"),
        ("trunkline.ndn.root", "hadoop/%zz", "trunkline.ndn.root"),
    ]:
        client = bed.cluster.start_client(
            FSSHELL, "-D", f"{setting}={value}", "-put", str(source), "/file", name="wrong"
        )
        assert client.wait(60) != 0
        assert said in client.log.read_text(errors="replace")

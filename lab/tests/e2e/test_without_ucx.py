"""The jar and the properties of `ucx` on hosts that have no UCX: stock TCP carries all, and the logs say what to do."""

import re

import pytest

from trunkline_lab.procs import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.planes("ucx")]

LIBRARY_DIR = "trunkline.ucx.library.dir"
MISSING = "no libucp.so.0 in trunkline.ucx.library.dir"
WAY_OUT = "apt install libucx0"
SMALL_BLOCKS = {"dfs.blocksize": "8388608"}  # six for the data


@pytest.fixture
def empty(tmp_path):
    """Where no UCX is found."""
    directory = tmp_path / "no-ucx"
    directory.mkdir()
    return str(directory)


@pytest.fixture
def source(data, tmp_path):
    file = tmp_path / "source"
    file.write_bytes(data)
    return file


def fell_back(bed, hosts, reason):
    """What `hosts` said of going by stock TCP instead; `reason` is what they counted, and nothing else."""

    def reasons():
        return {name for host in hosts for name in bed.transport(host) if name.startswith("fallback.")}

    wait_until("the fallback counter", reasons, 10)
    assert reasons() == {f"fallback.{reason}"}
    said = []
    for log in {process.log for process in bed.stage.processes if process.host in hosts}:
        own = re.findall(r"\S+: by stock TCP instead of ucx, .*", log.read_text(errors="replace"))
        assert len(set(own)) == len(own), f"{log} says it once of a DataNode, not at every block"
        said += own
    assert said
    return said


def carried_by_ucx(bed):
    return sum(bed.total(counter) for counter in ("ucx_writes", "ucx_reads", "ucx_receives"))


def test_without_ucx_anywhere_all_goes_by_stock_tcp(make_bed, data, source, empty, tmp_path):
    """Every process says once what is missing and how it is installed, and nothing is carried by UCX."""
    bed = make_bed(extra={LIBRARY_DIR: empty})
    bed.cluster.put(source, "/file", properties=SMALL_BLOCKS)
    bed.assert_whole("/file", data, tmp_path)
    bed.assert_all_alive()
    if bed.plane.name != "ucx":
        return
    said = fell_back(bed, list(bed.cluster.hosts.values()), "unavailable")
    assert all(MISSING in line and WAY_OUT in line for line in said)
    for datanode in bed.cluster.datanodes:
        (refusal,) = re.findall("UCX is off on this DataNode: .*", bed.log_of(datanode.host))
        assert MISSING in refusal
        assert WAY_OUT in refusal
    assert carried_by_ucx(bed) == 0


def test_a_client_with_ucx_is_told_by_datanodes_without_it(make_bed, data, source, empty, tmp_path):
    """The DataNodes answer that they take nothing by UCX, and why: the client's log has it, too."""
    bed = make_bed(extra={LIBRARY_DIR: empty})
    has_ucx = {LIBRARY_DIR: ""}  # what the loader finds
    bed.cluster.put(source, "/file", properties={**SMALL_BLOCKS, **has_ucx})
    if bed.plane.name == "ucx":
        said = fell_back(bed, ["client"], "not_served")
        assert all("it is off on the DataNode" in line and WAY_OUT in line for line in said)
    bed.assert_whole("/file", data, tmp_path)
    bed.assert_all_alive()
    assert carried_by_ucx(bed) == 0


def test_datanodes_with_ucx_serve_a_client_without_it(make_bed, data, source, empty, tmp_path):
    """Its blocks come in by stock TCP and go on between the DataNodes by UCX."""
    bed = make_bed()
    no_ucx = {LIBRARY_DIR: empty}
    bed.cluster.put(source, "/file", properties={**SMALL_BLOCKS, **no_ucx})
    bed.cluster.get("/file", tmp_path / "back", properties=no_ucx)
    assert (tmp_path / "back").read_bytes() == data
    if bed.plane.name == "ucx":
        said = fell_back(bed, ["client"], "unavailable")
        assert all(MISSING in line and WAY_OUT in line for line in said)
        assert bed.transport("client")["ucx_writes"] + bed.transport("client")["ucx_reads"] == 0
    bed.assert_carried()
    bed.assert_whole("/file", data, tmp_path)
    bed.assert_all_alive()

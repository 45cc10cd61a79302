"""Processes that are killed in mid-write over UCX, on real daemons that share memory: the bytes come out right."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from conftest import MIB, Bed, SlowWriter, a_bed, under_way

from trunkline_lab import planes
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
        yield lambda **how: stack.enter_context(a_bed(name, "ucx", **how))


@pytest.fixture
def bed(make_bed: Callable[..., Bed]) -> Bed:
    return make_bed()


def assert_by_ucx(bed: Bed) -> None:
    """Blocks were written and taken by UCX."""
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

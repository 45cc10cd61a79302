"""A protected cluster as docs/tls.md sets it up: hosts with routers of their own, joined to their rack's by TLS."""

import pytest
from conftest import MIB

from trunkline_lab import host_routers, planes
from trunkline_lab.secure_bench import ENCRYPTED

pytestmark = pytest.mark.e2e


@pytest.fixture
def bed(make_bed):
    return make_bed(extra=ENCRYPTED | planes.RESOLVER, set_up=host_routers.set_up)


def test_blocks_go_by_name_from_host_to_host(bed, data, tmp_path):
    source = tmp_path / "source"
    source.write_bytes(data)
    bed.cluster.put(source, "/file")
    bed.assert_whole("/file", data, tmp_path)
    bed.assert_carried()
    assert bed.total("named_reads") > 0
    assert bed.total("fallback") == 0
    links = [face for face in bed.router.faces() if face["uri"].startswith("tls")]
    assert {name for face in links for name in face["peer_names"]} >= {"client.rack1", "dn1.rack1", "dn4.rack1"}
    assert sum(face["in_bytes"] for face in links) > len(data)
    # A host without its router is on stock TCP, with Hadoop's own protection.
    (own,) = [process for process in bed.stage.processes if process.name == "router-client"]
    own.kill()
    source.write_bytes(data[: 4 * MIB])
    bed.cluster.put(source, "/by-tcp")
    bed.assert_whole("/by-tcp", data[: 4 * MIB], tmp_path)
    bed.assert_fell_back()

"""One small experiment end to end: namespaces, shaped links, real daemons, both planes, the document it leaves."""

import json
import os
import subprocess
import time
from dataclasses import replace

import pytest

from trunkline_lab import paths, payload
from trunkline_lab.experiments.result import DIRECTORY
from trunkline_lab.net import data_center, topology_file
from trunkline_lab.net.meter import LabBytes

pytestmark = pytest.mark.e2e


@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_a_block_written_in_a_tiny_data_centre_beats_tcp():
    command = [str(paths.LAB / "lab"), "run", "ndn-table2", "--topology", "tiny", "--scale", "0.125", "--json"]
    name = f"e{os.getpid() % 10**8}"
    done = subprocess.run([*command, "--lab", name], capture_output=True, text=True, check=False, timeout=400)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["ok"] is True
    assert document == json.loads((DIRECTORY / "ndn-table2-tiny.json").read_text())
    rows = {row["what"]: row for row in document["rows"]}
    second = rows["second replica (H5)"]
    assert second["ours"] < 0.6 * second["tcp"]  # it receives the block and does not send it on
    assert document["planes"]["tcp"]["payload_by_category"]["replication"] >= 2 * 16 * 2**20
    assert document["planes"]["ndn"]["payload_by_category"]["named data"] >= 3 * 16 * 2**20
    assert (DIRECTORY / "ndn-table2-tiny.svg").exists()
    assert not [there for there in os.listdir("/run/netns") if there.startswith(f"tl-{name}-")]


@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_what_a_hosts_datanode_took_in_by_name_is_read_on_that_host(tmp_path):
    """A host with a DataNode, a client and a router of its own: of a read there its link carries next to nothing."""
    tiny = topology_file.named("tiny")
    topology = tiny.with_roles(replace(tiny.roles, clients=("h3",)))
    file, copy = tmp_path / "file", tmp_path / "copy"
    size = 32 << 20
    payload.make(file, size)
    lab = f"r{os.getpid() % 10**8}"
    with data_center.rig(topology, "ndn", tmp_path / "ndn", lab=lab, disk_bytes=7 * size) as rig:
        # The router hears of a written block a while after the writer: on a busy machine, a longer one.
        for pause_s in (2, 5, 15):
            path = f"/file-{pause_s}"  # another file each time: the routers keep what was read
            put = rig.put(file, path, 2, counts=False)
            assert put.client("bytes_published") >= size
            time.sleep(pause_s)
            got = rig.get(path, copy, counts=False)
            assert got.client("bytes_read") >= size
            assert copy.read_bytes() == file.read_bytes()
            assert isinstance(got.links, LabBytes)
            carried = got.links.links.both("h3")
            if carried < size // 8:
                break
            copy.unlink()
        assert carried < size // 8

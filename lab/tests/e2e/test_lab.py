"""One small experiment end to end: namespaces, shaped links, real daemons, both planes, the document it leaves."""

import json
import os
import subprocess

import pytest

from trunkline_lab import paths
from trunkline_lab.experiments.result import DIRECTORY

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

"""Hosts whose clocks differ, in a cluster with block tokens, which are good for a time, as the keys behind them are."""

import random
from pathlib import Path

import pytest
from conftest import MIB

from trunkline_lab.cluster import DATANODE
from trunkline_lab.procs import wait_until

pytestmark = pytest.mark.e2e

# A token is good for longer than the clocks differ by, as any that works in stock Hadoop.
TOKENS = {
    "dfs.block.access.token.enable": "true",
    "dfs.block.access.token.lifetime": "12",
    "dfs.block.access.key.update.interval": "12",
}
OFF_BY_S = (300, -300, 0)
LIBRARY = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")

faked = pytest.mark.skipif(not LIBRARY.exists(), reason="no libfaketime here: install it to give daemons other clocks")


def set_clock(bed, datanode, off_by_s):
    """Starts a DataNode again, whose wall clock, and nothing else, is off."""
    datanode.process.kill()
    settings = [f"LD_PRELOAD={LIBRARY}", f"FAKETIME={off_by_s:+d}s", "FAKETIME_DONT_FAKE_MONOTONIC=1"]
    command = ["env", *settings, *bed.cluster.java(datanode.conf, DATANODE)]
    datanode.process = bed.stage.start(datanode.host, datanode.host, command)


@faked
def test_clocks_that_differ_by_five_minutes_keep_nobody_from_named_data(make_bed, tmp_path):
    bed = make_bed(extra=TOKENS)
    data = random.Random(6).randbytes(24 * MIB)
    source = tmp_path / "source"
    source.write_bytes(data)
    for datanode, off_by_s in zip(bed.cluster.datanodes, OFF_BY_S, strict=False):
        set_clock(bed, datanode, off_by_s)
    for datanode in bed.cluster.datanodes:
        log = datanode.process.log
        wait_until(
            "a block report", lambda log=log: "Successfully sent block report" in log.read_text(), 60, pause_s=0.5
        )
    for number in range(3):  # pipelines in one order and another
        bed.cluster.put(source, f"/file-{number}")
        bed.assert_whole(f"/file-{number}", data, tmp_path)
    assert bed.total("fallback") == 0
    assert bed.total("secured_connections") > 0
    assert bed.total("bytes_read") >= 3 * len(data)
    bed.assert_carried()

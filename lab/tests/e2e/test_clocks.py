"""Hosts whose clocks differ, in a cluster with block tokens, which are good for a time, as the keys behind them are."""

import random
from datetime import datetime
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


REPORTED = "Successfully sent block report"


def set_clock(bed, datanode, off_by_s):
    """Starts a DataNode again, whose wall clock, and nothing else, is off; returns when the NameNode knows it."""
    log = datanode.process.log
    datanode.process.kill()
    before = log.read_text().count(REPORTED)
    own = {"FAKETIME": f"{off_by_s:+d}s", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    own["FAKETIME_FORCE_MONOTONIC_FIX"] = "0"  # a JVM's waits end at once otherwise
    settings = [f"LD_PRELOAD={LIBRARY}", *(f"{key}={value}" for key, value in own.items())]
    command = ["env", *settings, *bed.cluster.java(datanode.conf, DATANODE)]
    datanode.process = bed.stage.start(datanode.host, datanode.host, command)
    wait_until("a block report", lambda: log.read_text().count(REPORTED) > before, 60, datanode.process, pause_s=0.5)
    said = [line for line in log.read_text().splitlines() if REPORTED in line][-1]
    told = datetime.strptime(said[:19], "%Y-%m-%d %H:%M:%S")
    assert abs((told - datetime.now()).total_seconds() - off_by_s) < 60, said


@faked
def test_clocks_that_differ_by_five_minutes_keep_nobody_from_named_data(make_bed, tmp_path):
    bed = make_bed(extra=TOKENS)
    data = random.Random(6).randbytes(12 * MIB)
    source = tmp_path / "source"
    source.write_bytes(data)
    for datanode, off_by_s in zip(bed.cluster.datanodes, OFF_BY_S, strict=False):
        set_clock(bed, datanode, off_by_s)
    for number in range(3):  # pipelines in one order and another
        bed.cluster.put(source, f"/file-{number}")
        bed.assert_whole(f"/file-{number}", data, tmp_path)
    assert bed.total("fallback") == 0
    assert bed.total("secured_connections") > 0
    assert bed.total("bytes_read") >= 3 * len(data)
    bed.assert_carried()

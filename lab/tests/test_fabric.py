"""Namespaces and links are made, counted and removed, also after a crash; nothing else is touched."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import labs
import pytest

from trunkline_lab.net import fabric as fabrics
from trunkline_lab.net import flows, links, namespaces, topology_file
from trunkline_lab.net.fabric import Fabric, LabError
from trunkline_lab.net.trace import LinkTrace
from trunkline_lab.procs import wait_until

TINY = topology_file.named("tiny")


@pytest.fixture
def fabric():
    with labs.standing("t", TINY) as made:
        yield made


def left(fabric):
    return [name for name in os.listdir("/run/netns") if name.startswith(f"tl-{fabric.lab}-")]


def test_bytes_are_counted_on_each_link_of_the_way_and_on_no_other(fabric):
    meter = links.LinkMeter(fabric, TINY)
    before = meter.read()
    labs.transfer(fabric, "h1", "h3", 5_000_000)
    count = meter.read() - before
    meter.close()
    # Frames of 1514 bytes carry 1448: headers and a few retransmissions come on top of the payload.
    for way in (("h1", "r1"), ("r1", "r2"), ("r2", "h3")):
        assert 5_000_000 * 1514 / 1448 <= count.by_way[way].sent_bytes < 6_500_000
    for idle in ("h2", "h4"):
        assert count.both(idle) < 2000
    assert count.total() == count.core() + sum(count.both(host) for host in TINY.hosts)


def test_a_trace_tells_which_links_were_used_and_when(fabric):
    with LinkTrace(fabric, TINY) as trace:
        labs.transfer(fabric, "h1", "h3", 5_000_000)
    sent, use = trace.samples[-1].sent[("r1", "r2")] - trace.samples[0].sent[("r1", "r2")], trace.use()
    assert sent > 5_000_000
    periods = [after.at_s - before.at_s for before, after in itertools.pairwise(trace.samples)]
    carried = sum(percent / 100 * 10**9 / 8 * s for (_, percent), s in zip(use[("r1", "r2")], periods, strict=True))
    assert carried == pytest.approx(sent)
    assert max(percent for _, percent in use[("h2", "r1")]) < 1


def test_a_host_has_its_own_name_and_hosts_file(fabric):
    words = ["sh", "-c", "cat /proc/sys/kernel/hostname; grep h4 /etc/hosts"]
    shown = subprocess.run(fabric.command("h2", words), capture_output=True, text=True, check=True)
    assert shown.stdout == f"h2\n{TINY.address('h4')} h4\n"
    assert f"{TINY.address('h4')} h4" not in Path("/etc/hosts").read_text()


def test_down_ends_what_runs_and_may_be_said_twice(fabric):
    child = labs.run(fabric, "h2", "import time; print('on', flush=True); time.sleep(300)")
    assert child.stdout.readline() == "on\n"
    assert fabric.processes() == {"h2": [child.pid]}
    assert fabric.down() == len(TINY.nodes)
    assert child.wait(10) != 0
    assert left(fabric) == []
    assert fabric.down() == 0


def test_up_twice_leaves_one(fabric):
    fabric.up(TINY)
    assert len(left(fabric)) == len(TINY.nodes)


def test_what_a_killed_lab_left_is_removed(fabric):
    labs.killed(fabric.lab, "topology_file.named('tiny')", "subprocess.Popen(f.command('h1', ['sleep', '300']))")
    wait_until("the orphan", lambda: "h1" in fabric.processes(), 10)
    assert fabric.down() == len(TINY.nodes)
    assert left(fabric) == []
    assert fabric.processes() == {}


def test_a_namespace_of_somebody_else_is_refused_and_left(fabric):
    fabric.down()
    strange = fabric.namespace("h1")
    namespaces.make(strange)
    try:
        with pytest.raises(LabError, match="is not of this lab's making"):
            fabric.up(TINY)
        fabric.down()
        assert namespaces.exists(strange)
    finally:
        namespaces.remove(strange)


ALONE = """
import subprocess
from trunkline_lab.net import namespaces
namespaces.make("tl-one")
subprocess.run(["ip", "netns", "add", "tl-two"], check=True)
namespaces.remove("tl-one")
assert not namespaces.exists("tl-one")
"""


def test_a_namespace_is_removed_also_where_ip_netns_came_second():
    """The first `ip netns add` of a machine mounts /run/netns over itself, where nobody has done so before."""
    script = 'mount -t tmpfs none /run && exec "$0" -c "$1"'
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, sys.executable, ALONE]
    subprocess.run(words, check=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})


def test_only_one_command_at_a_time(fabric):
    with fabric.locked(), pytest.raises(LabError, match="is being used"), Fabric(fabric.lab).locked():
        pass


def test_too_little_memory_is_said_before_anything_is_made(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(LabError, match=r"need root.*MiB of memory are needed"):
        fabrics.preflight(1 << 60)


def test_too_little_disk_is_said_before_anything_is_made(tmp_path):
    with pytest.raises(LabError, match=r"MiB are needed on the disk of .*not-there.* take a smaller --scale"):
        fabrics.preflight(0, tmp_path / "not-there" / "yet", 1 << 60)


def test_categories_add_up_over_the_links_of_the_way():
    found = flows.by_way(TINY, [flows.Flow("h1", "h3", "replication", 100, 7)])
    assert found[("r1", "r2")] == {"replication": 100}
    assert found[("r2", "r1")] == {"replication": 7}
    assert set(found) == {("h1", "r1"), ("r1", "r2"), ("r2", "h3"), ("h3", "r2"), ("r2", "r1"), ("r1", "h1")}

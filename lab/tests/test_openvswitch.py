"""Switches that speak OpenFlow: they forward what flows say, vanish and return, and are removed with their lab."""

import subprocess
import sys
from pathlib import Path

import labs
import pytest

from trunkline_lab.net import fabric as fabrics
from trunkline_lab.net import kernel, links, openvswitch, topology_file
from trunkline_lab.net.fabric import Fabric, LabError
from trunkline_lab.procs import wait_until

TEXT = """
about = "t"
[link]
rate = "200mbit"
queue = "256KiB"
[[switch]]
name = "s1"
openflow = true
[[switch]]
name = "s2"
openflow = true
[[switch]]
name = "b1"
[[rack]]
name = "/a"
at = "s1"
hosts = ["h1", "h2"]
[[rack]]
name = "/b"
at = "b1"
hosts = ["h3"]
[[links]]
ends = ["s1", "s2"]
[[links]]
ends = ["s2", "b1"]
"""
TOPOLOGY = topology_file.parse(TEXT, "t", "t.toml")
FLOOD = "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
FLOOD += "for _ in range(2000): s.sendto(bytes(1400), ('h2', 9))"


@pytest.fixture
def fabric():
    with labs.standing("o", TOPOLOGY) as made:
        yield made


def switches(fabric):
    return [fabric.switch(TOPOLOGY, name) for name in TOPOLOGY.openflow]


def forward(fabric):
    for switch in switches(fabric):
        switch.ofctl("add-flow", "actions=NORMAL")


def test_hosts_reach_each_other_when_flows_say_so_and_not_before(fabric):
    words = ["ping", "-q", "-c", "1", "-W", "1", "h2"]
    assert subprocess.run(fabric.command("h1", words), capture_output=True, check=False).returncode == 1
    forward(fabric)
    meter = links.LinkMeter(fabric, TOPOLOGY)
    before = meter.read()
    assert labs.answered(fabric, "h1", "h3")
    count = meter.read() - before
    meter.close()
    for way in (("h1", "s1"), ("s1", "s2"), ("s2", "b1"), ("b1", "h3"), ("s2", "s1")):
        assert count.by_way[way].sent_bytes >= 3 * 98


def test_tcp_carries_whole_segments_through_switches_and_bridges(fabric):
    forward(fabric)
    labs.transfer(fabric, "h1", "h3", 2_000_000)


def test_ports_have_their_links_rate_numbers_and_queues(fabric):
    switch = switches(fabric)[0]
    shown = switch.ofctl("show")
    assert "dpid:0000000000000001" in shown
    for number, name in ((1, "to-h1"), (2, "to-h2"), (3, "to-s2")):
        assert f" {number}({name})" in shown
        assert switch.vsctl("get", "qos", switch.vsctl("get", "port", name, "qos").strip(), "other_config") == (
            '{max-rate="200000000"}\n'
        )
    there = kernel.Namespace(fabric.namespace("s1"))
    kinds = {q["index"]: q.get_attr("TCA_KIND") for q in there._route.get_qdiscs()}
    lengths = {link["index"]: link.get_attr("IFLA_TXQLEN") for link in there._route.get_links()}
    port = there.index("to-s2")
    there.close()
    assert (kinds[port], lengths[port]) == ("htb", 262144 // 1500)


def test_a_full_queue_at_one_port_keeps_no_other_port_from_sending(fabric):
    forward(fabric)
    assert labs.answered(fabric, "h1", "h2")
    switch = switches(fabric)[0]
    switch.plain_rates([openvswitch.Port("to-h2", 2, 100_000)])
    subprocess.run(fabric.command("h1", [sys.executable, "-c", FLOOD]), check=True, timeout=60)
    there = kernel.Namespace(fabric.namespace("s1"))
    drops = there.counts()["to-h2"].drops
    there.close()
    assert drops > 0
    assert labs.answered(fabric, "h1", "h3", count=20)


def test_a_switch_vanishes_and_returns(fabric):
    forward(fabric)
    switch = switches(fabric)[1]
    pid = switch.pid()
    switch.kill()
    assert switch.pid() == 0
    switch.start(openvswitch.ports(TOPOLOGY, "s2"))
    assert switch.pid() not in (0, pid)
    assert " 1(to-s1)" in switch.ofctl("show")
    assert switch.ofctl("dump-flows").count("actions=") == 0
    forward(fabric)
    assert labs.answered(fabric, "h2", "h3")


def test_the_controllers_node_is_in_the_management_network_alone(fabric):
    assert labs.answered(fabric, "controller", TOPOLOGY.address("s1"))
    words = fabric.command("controller", ["ip", "-br", "addr"])
    shown = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "172.31.77.1/24" in shown
    assert "10.77." not in shown


def test_what_a_killed_lab_left_is_removed(fabric, tmp_path):
    fabric.down()
    (tmp_path / "t.toml").write_text(TEXT)
    labs.killed(fabric.lab, f"topology_file.load(Path({str(tmp_path / 't.toml')!r}))")
    pids = [switch.pid(daemon) for switch in switches(fabric) for daemon in ("ovs-vswitchd", "ovsdb-server")]
    assert all(pids)
    assert fabric.down() == len(TOPOLOGY.nodes) + 1
    wait_until("their end", lambda: not any(Path(f"/proc/{pid}/fd").exists() for pid in pids), 10)
    assert not fabric.directory.exists()
    assert not list(Path("/run/netns").glob(f"tl-{fabric.lab}-*"))


def test_the_package_that_is_missing_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(LabError, match=r"ovs-vswitchd.*is missing; install openvswitch-switch"):
        Fabric("nosuch").up(TOPOLOGY)
    with pytest.raises(LabError, match="install openvswitch-switch"):
        fabrics.preflight(topology=TOPOLOGY)

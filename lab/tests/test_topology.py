"""Topology files are read whole; what is wrong with one is said with its place and the way out."""

import pytest

from trunkline_lab.net import topology_file
from trunkline_lab.net.topology import TopologyError
from trunkline_lab.net.units import parse_rate, rate_text

GOOD = """
[[router]]
name = "r1"
[[router]]
name = "r2"
[[switch]]
name = "s1"
[[rack]]
name = "/a"
at = "r1"
hosts = ["h1..h3"]
[[rack]]
name = "/b"
at = "s1"
hosts = ["x"]
rate = "250mbit"
[[links]]
ends = ["r1", "r2"]
[[links]]
ends = ["r2", "s1"]
queue = "64KiB"
[roles]
namenode = "h1"
datanodes = ["h2", "x"]
"""


def parse(text):
    return topology_file.parse(text, "t", "t.toml")


def test_a_file_becomes_hosts_links_racks_and_addresses():
    topology = parse(GOOD)
    assert topology.hosts == ("h1", "h2", "h3", "x")
    assert topology.racks["x"] == "/b"
    assert [topology.address(n) for n in ("h1", "s1")] == ["10.77.0.1", "10.77.0.7"]
    shapes = {link.name: link.shape for link in topology.links}
    assert shapes["x-s1"].rate_bit_s == 250_000_000
    assert shapes["r2-s1"].queue_bytes == 65536
    assert shapes["h1-r1"].rate_bit_s == 10**9


def test_paths_trees_and_the_nearest_router():
    topology = parse(GOOD)
    assert [link.name for link in topology.path("h1", "x")] == ["h1-r1", "r1-r2", "r2-s1", "x-s1"]
    assert topology.tree("h1", ["h2", "x"]) == {
        ("h1", "r1"),
        ("r1", "h2"),
        ("r1", "r2"),
        ("r2", "s1"),
        ("s1", "x"),
    }
    assert topology.router_of("x") == "r2"
    assert topology.router_of("h3") == "r1"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('hosts = ["x"]', 'hosts = ["X"]'), "'X' is no name"),
        (('ends = ["r1", "r2"]', 'ends = ["r1", "h1"]'), "ends are two routers or switches"),
        (("[roles]", '[[links]]\nends = ["r1", "s1"]\n[roles]'), "closes a loop"),
        (('[[links]]\nends = ["r2", "s1"]\nqueue = "64KiB"', ""), "can't be reached from h1"),
        (('queue = "64KiB"', 'queue = "1"'), "queue = 1 is not between"),
        (('rate = "250mbit"', 'rate = "fast"'), "'fast' is no rate"),
        (('rate = "250mbit"', 'speed = "1gbit"'), "no such key 'speed'"),
        (('["h2", "x"]', '["h2", "y"]'), "'y' is no host"),
        (('hosts = ["x"]', 'hosts = ["h1"]'), "h1 stands there twice"),
        (('hosts = ["h1..h3"]', 'hosts = ["h1..x3"]'), "is no range"),
        (('[[router]]\nname = "r1"', 'subnet = "10.0.0.0/30"\n[[router]]\nname = "r1"'), "no room for 7 nodes"),
        (('namenode = "h1"', ""), "need a namenode"),
    ],
)
def test_what_is_wrong_is_said(change, message):
    text = GOOD.replace(*change)
    assert text != GOOD
    with pytest.raises(TopologyError, match=f"t.toml.*{message}"):
        parse(text)


RING = """
[[switch]]
name = "s1"
openflow = true
[[switch]]
name = "s2"
openflow = true
[[switch]]
name = "s3"
openflow = true
[[switch]]
name = "b"
[[rack]]
name = "/a"
at = "s1"
hosts = ["h1"]
[[rack]]
name = "/b"
at = "b"
hosts = ["h2"]
[[links]]
ends = ["s1", "s2"]
[[links]]
ends = ["s2", "s3"]
[[links]]
ends = ["s3", "s1"]
[[links]]
ends = ["s3", "b"]
[roles]
namenode = "h1"
datanodes = ["h2"]
resourcemanager = "h2"
nodemanagers = ["h2"]
"""


def test_openflow_switches_may_be_joined_in_a_loop():
    topology = parse(RING)
    assert topology.openflow == ("s1", "s2", "s3")
    assert topology.bridges == ("b",)
    assert [link.name for link in topology.path("h1", "h2")] == ["h1-s1", "s3-s1", "s3-b", "h2-b"]
    assert [topology.port("s3", link) for link in topology.links_of("s3")] == [1, 2, 3]
    assert topology.dpid("s2") == 2
    assert topology.management == {
        "controller": "172.31.77.1",
        "s1": "172.31.77.2",
        "s2": "172.31.77.3",
        "s3": "172.31.77.4",
        "h2": "172.31.77.5",
    }
    assert topology.address("s3") == "172.31.77.4"
    assert parse(GOOD).management == {}


def test_bridges_mirror_where_no_switch_speaks_openflow():
    plain = parse(GOOD)
    topology = plain.mirrored()
    assert topology.controlled == topology.bridges == plain.bridges
    assert list(topology.management) == ["controller", *topology.bridges, *topology.roles.datanodes]
    assert topology.address(topology.bridges[0]) == plain.address(topology.bridges[0])
    assert plain.controlled == ()
    openflow = topology_file.named("qos-fig5")
    assert openflow.mirrored() == openflow
    with pytest.raises(TopologyError, match="switches of one kind"):
        parse(RING).mirrored()
    with pytest.raises(TopologyError, match="'controller' is a name that the lab needs"):
        parse(GOOD.replace('["x"]', '["x", "controller"]')).mirrored()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (('name = "s2"\nopenflow = true', 'name = "s2"'), "closes a loop.*only switches with openflow = true"),
        (('name = "s2"\nopenflow = true', 'name = "s2"\nopenflow = 1'), "s2: openflow = 1 is not true or false"),
        (('ends = ["s2", "s3"]', 'ends = ["s2", "s1"]'), "two links s1-s2"),
        (('ends = ["s2", "s3"]', 'ends = ["s2", "s2"]'), "both its ends at one switch"),
        (('"h1"', '"mgmt0"'), "'mgmt0' is a name that the lab needs"),
        (('"h1"', '"controller"'), "'controller' is a name that the lab needs"),
        (("[[switch]]", 'subnet = "172.31.0.0/16"\n[[switch]]'), "overlaps 172.31.77.0/24"),
    ],
)
def test_what_is_wrong_with_openflow_switches_is_said(change, message):
    text = RING.replace(*change, 1)
    assert text != RING
    with pytest.raises(TopologyError, match=f"t.toml.*{message}"):
        parse(text)


def test_all_topologies_of_the_lab_are_right():
    assert {"paper-fig5", "tiny"} <= set(topology_file.names())
    for name in topology_file.names():
        assert topology_file.named(name).about


@pytest.mark.parametrize("text", ["1gbit", "250mbit", "9600bit", "64kbit"])
def test_rates_are_read_as_written(text):
    assert rate_text(parse_rate(text)) == text

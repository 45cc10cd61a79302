"""The OpenFlow controller in a lab: hosts reach each other through it, queues come with a policy and go with it."""

import labs
import pytest

from trunkline_lab import qos_policy
from trunkline_lab.controller import Controller, Refused
from trunkline_lab.net import topology_file
from trunkline_lab.procs import Stage

TEXT = """
about = "t"
[link]
rate = "100mbit"
[[switch]]
name = "s1"
openflow = true
[[switch]]
name = "s2"
openflow = true
[[switch]]
name = "s3"
openflow = true
[[rack]]
name = "/a"
at = "s1"
hosts = ["h1"]
[[rack]]
name = "/b"
at = "s2"
hosts = ["h2"]
[[links]]
ends = ["s1", "s2"]
[[links]]
ends = ["s2", "s3"]
[[links]]
ends = ["s3", "s1"]
[roles]
namenode = "h1"
datanodes = ["h2"]
"""
TOPOLOGY = topology_file.parse(TEXT, "t", "t.toml")
QUEUES = (
    qos_policy.Queue("q0", 0, 0, 4, 50 * 10**6, 50 * 10**6),
    qos_policy.Queue("q2", 2, 8, 7, 5 * 10**6, 5 * 10**6),
)


@pytest.fixture
def lab(tmp_path):
    with labs.standing("c", TOPOLOGY) as fabric, Stage(tmp_path / "logs", on_host=fabric.command) as stage:
        controller = Controller(stage, fabric, TOPOLOGY, tmp_path)
        controller.start()
        yield fabric, controller


def owners(fabric):
    """Whose the QoS of the ports toward hosts are: a word for each."""
    found = []
    for name, port in (("s1", "to-h1"), ("s2", "to-h2")):
        switch = fabric.switch(TOPOLOGY, name)
        qos = switch.vsctl("--bare", "get", "port", port, "qos").strip()
        found.append(switch.vsctl("get", "qos", qos, "external_ids").strip())
    return found


def test_queues_come_with_a_policy_and_links_have_their_rates_without(lab):
    fabric, controller = lab
    controller.introduce()
    assert labs.answered(fabric, "h1", "h2", count=1)
    assert owners(fabric) == ["{owner=lab}"] * 2

    text = qos_policy.text(TOPOLOGY, "two", QUEUES, {"iperf": "q2"}, default="q0", rate_bit_s=100 * 10**6)
    with pytest.raises(Refused, match="422"):
        controller.apply(text.replace('"q2"', '"q7"', 1))
    assert owners(fabric) == ["{owner=lab}"] * 2

    controller.apply(text)
    assert {(queue["queue"], queue["mode"]) for queue in controller.queues()} == {("q0", "dscp"), ("q2", "dscp")}
    assert "{owner=lab}" not in owners(fabric)

    controller.clear()
    assert owners(fabric) == ["{owner=lab}"] * 2

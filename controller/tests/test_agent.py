"""The agent and a real Open vSwitch: what the controller wants is what the kernel's classes and filters are."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import replace

import openvswitch
import pytest
from fake_control import FakeControl
from openvswitch import until

from trunkline_controller.control import QueueMode
from trunkline_controller.flows.entry import Output, SetQueue
from trunkline_controller.http.server import HttpServer
from trunkline_controller.http.settings import HttpSettings
from trunkline_controller.net.topology import Dpid, PortNo
from trunkline_controller.queues.agent import agent as agent_module
from trunkline_controller.queues.agent.agent import Agent, clear
from trunkline_controller.queues.agent.database import DatabaseError
from trunkline_controller.queues.agent.settings import AgentSettings
from trunkline_controller.queues.agent.tc import TrafficControl
from trunkline_controller.queues.probe import Prober
from trunkline_controller.queues.wanted import PortQueues, QueuesWanted, QueueWanted

pytestmark = [
    pytest.mark.switch,
    pytest.mark.skipif(bool(openvswitch.missing()), reason=openvswitch.missing()),
]

MBIT = 1_000_000
DPID = 1
QUEUES = (
    QueueWanted("q0", 0, 0, 4, 50 * MBIT, 60 * MBIT),
    QueueWanted("q1", 1, 11, 1, 200 * MBIT, 210 * MBIT),
    QueueWanted("q2", 10, 3, 7, 0, 5 * MBIT),
)


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    with openvswitch.network(tmp_path_factory.mktemp("agent")) as network:
        network.switch("s1", DPID)
        network.host("a", "s1")
        network.host("b", "s1")
        network.ofctl("add-flow", "s1", "actions=normal")
        yield network


@pytest.fixture
def control():
    made = FakeControl()
    made.failed = None  # what ended an agent
    return made


@pytest.fixture
def server(control):
    served = HttpServer(control, HttpSettings(port=0))
    served.start()
    yield served
    served.stop()


def settings(net, port, **changed):
    words = {"controller": f"http://127.0.0.1:{port}", "database": net.database, "name": "test", "check_s": 1.0}
    return AgentSettings(**{**words, **changed})


@pytest.fixture
def running(net, control, server):
    """Starts agents; all have ended and left nothing at the end."""
    started = []

    def start(**changed):
        agent = Agent(settings(net, server.port, **changed))
        thread = threading.Thread(target=run, args=(agent,), daemon=True)
        thread.start()
        started.append((agent, thread))
        return agent

    def run(agent):
        try:
            agent.run()
        except Exception as error:
            control.failed = error
            raise

    def stop():
        for agent, thread in started:
            agent.stop()
            thread.join(30)
            assert not thread.is_alive()
        started.clear()

    start.stop = stop
    yield start
    stop()
    clear(settings(net, server.port))
    assert json.loads(net.vsctl("--format=json", "list", "queue"))["data"] == []


def port_of(net, name, queues=QUEUES, rate=300 * MBIT, default=0):
    interface = net.hosts[name].port
    return PortQueues(Dpid(DPID), PortNo(net.port_number(interface)), interface, rate, default, queues)


CLASS = re.compile(r"class htb 1:(\w+) parent .*?prio (\d+) .*?rate (\d+)(\w+) ceil (\d+)(\w+) ")
UNITS = {"bit": 1, "Kbit": 10**3, "Mbit": 10**6, "Gbit": 10**9}


def classes(net, name):
    """Queue number to (minimum, maximum, priority) of a host's port, as the kernel has them."""
    return {
        int(minor, 16) - 1: (int(rate) * UNITS[unit], int(ceil) * UNITS[ceil_unit], int(priority))
        for minor, priority, rate, unit, ceil, ceil_unit in CLASS.findall(
            openvswitch.run("tc", "class", "show", "dev", net.hosts[name].port)
        )
    }


def filters(net, name):
    text = openvswitch.run("tc", "filter", "show", "dev", net.hosts[name].port)
    return sorted(line for line in text.splitlines() if "flowid" in line)


def reported(control, version, problems=0):
    """Waits for a report of this version; its ports."""

    def last():
        assert control.failed is None
        found = [report for report in control.reports if report.version == version]
        return found and sum(bool(port.problem) for port in found[-1].ports) == problems and found[-1]

    return until(f"a report of {version}", last).ports


def want(control, *ports):
    wanted = QueuesWanted(ports, frozenset({Dpid(DPID)}))
    control.want(wanted)
    return wanted.version


def test_classes_and_filters_are_what_is_wanted_and_follow_it(net, control, running):
    running()
    version = want(control, port_of(net, "a"))
    reported(control, version)
    assert classes(net, "a") == {
        0: (50 * MBIT, 60 * MBIT, 4),
        1: (200 * MBIT, 210 * MBIT, 1),
        10: (12_000, 5 * MBIT, 7),  # none given: HTB's least
    }
    assert len(filters(net, "a")) == 4  # two marks, IPv4 and IPv6
    assert classes(net, "b") == {}

    other = (QUEUES[0], QueueWanted("q1", 1, 11, 2, 100 * MBIT, 110 * MBIT), QueueWanted("q3", 3, 3, 7, 0, MBIT))
    reported(control, want(control, port_of(net, "a", other), port_of(net, "b")))
    assert classes(net, "a") == {
        0: (50 * MBIT, 60 * MBIT, 4), 1: (100 * MBIT, 110 * MBIT, 2), 3: (12_000, MBIT, 7),
    }  # fmt: skip
    assert sum("flowid 1:4" in line for line in filters(net, "a")) == 2
    assert set(classes(net, "b")) == {0, 1, 10}

    reported(control, want(control, port_of(net, "b")))
    assert classes(net, "a") == {}
    assert filters(net, "a") == []
    assert set(classes(net, "b")) == {0, 1, 10}

    reported(control, want(control))
    assert classes(net, "b") == {}


def sent(net, name):
    traffic = TrafficControl()
    try:
        return dict(traffic.sent_packets(net.hosts[name].port))
    finally:
        traffic.close()


@pytest.mark.parametrize("default", [0, 10])
def test_marked_packets_go_through_their_queue_alone(net, control, running, default):
    running()
    queues = (replace(QUEUES[0], dscp=5), *QUEUES[1:])
    reported(control, want(control, port_of(net, "b", queues, default=default)))
    a, b = net.hosts["a"], net.hosts["b"]
    addresses = [(b.address, 0x0), ("fd00::b", 0x2C), (b.address, 0x2C), (b.address, 0x0C)]
    for host, address in ((a, "fd00::a"), (b, "fd00::b")):
        host.run("ip", "address", "replace", f"{address}/64", "dev", "eth0", "nodad")
    for address, _ in addresses:
        a.run("ping", "-n", "-q", "-c1", "-W5", address)  # neighbours are known
    for address, tos in addresses:
        queue = {0x2C: 1, 0x0C: 10, 0: default}[tos]
        before = sent(net, "b")
        a.run("ping", "-n", "-q", "-c20", "-i0.01", "-W5", "-Q", str(tos), address)
        after = sent(net, "b")
        rises = {number: after[number] - before[number] for number in after}
        assert rises[queue] >= 20, (address, tos, rises)
        # ARP and neighbour discovery go where unmarked packets do
        assert all(rise < 10 for number, rise in rises.items() if number != queue), (address, tos, rises)


class OfctlEdge:
    """What the controller does by OpenFlow, done by ovs-ofctl."""

    def __init__(self, net):
        self.net = net
        self.waiting = []

    def packet_out(self, dpid, data, actions):
        words = []
        for action in actions:
            if isinstance(action, SetQueue):
                words.append(f"set_queue:{action.queue}")
            else:
                assert isinstance(action, Output)
                words.append(f"output:{action.port}")
        self.waiting.append(f"packet-out in_port=controller packet={data.hex()} actions={','.join(words)}")

    def send(self):
        if self.waiting:
            file = self.net.directory / "frames"
            file.write_text("\n".join(self.waiting) + "\n")
            self.waiting.clear()
            self.net.ofctl("bundle", "s1", str(file), version="OpenFlow15")

    def queue_packets(self, dpid, port, timeout_s):
        self.send()
        found = {}
        for line in self.net.ofctl("queue-stats", "s1", str(port)).splitlines():
            if " queue " in line:
                queue = line.partition(" queue ")[2].partition(":")[0]
                found[int(queue)] = int(line.partition("pkts=")[2].partition(",")[0])
        return found


def test_a_probe_finds_that_the_userspace_datapath_takes_marks_and_not_set_queue(net, control, running):
    running()
    port, bare = port_of(net, "b"), port_of(net, "a")
    reported(control, want(control, port))
    with_queues, without = Prober(OfctlEdge(net)).probe([port, bare])
    assert (with_queues.mode, with_queues.why) == (QueueMode.DSCP, "")
    assert without.mode is QueueMode.NONE
    assert "no queue q1, q2" in without.why


def test_a_probe_notices_that_filters_are_gone(net, control, running):
    running()
    port = port_of(net, "b")
    reported(control, want(control, port))
    running.stop()
    openvswitch.run("tc", "filter", "delete", "dev", port.name, "parent", "1:")
    (result,) = Prober(OfctlEdge(net)).probe([port])
    assert result.mode is QueueMode.NONE
    assert "set_queue has no effect on queue q1, q2, and marks have none on queue q1, q2" in result.why


def test_what_somebody_takes_away_comes_back(net, control, running):
    running()
    port = port_of(net, "a")
    reported(control, want(control, port))
    whole, marked = classes(net, "a"), filters(net, "a")
    openvswitch.run("tc", "filter", "delete", "dev", port.name, "parent", "1:")
    until("filters are back", lambda: filters(net, "a") == marked)
    net.vsctl("clear", "port", port.name, "qos")
    until("classes are back", lambda: classes(net, "a") == whole and filters(net, "a") == marked)


def test_queues_survive_a_restart_of_the_agent_and_of_the_switch(net, control, running):
    running()
    port = port_of(net, "a")
    version = want(control, port)
    reported(control, version)
    records = net.vsctl("--columns=_uuid", "list", "queue")
    running.stop()
    assert set(classes(net, "a")) == {0, 1, 10}  # an agent that ends leaves them
    control.reports.clear()
    running()
    reported(control, version)
    assert net.vsctl("--columns=_uuid", "list", "queue") == records  # and one that begins makes no new ones
    net.kill_vswitchd()
    net.start_vswitchd()
    until("classes and filters are back", lambda: set(classes(net, "a")) == {0, 1, 10} and len(filters(net, "a")) == 4)


def test_somebody_elses_queues_are_left_alone_and_said(net, control, running):
    port = port_of(net, "a")
    net.vsctl(
        "set", "port", port.name, "qos=@q", "--", "--id=@q", "create", "qos", "type=linux-htb",
        "other-config:max-rate=1000000", "queues:0=@z", "--", "--id=@z", "create", "queue",
        "other-config:max-rate=500000",
    )  # fmt: skip
    try:
        until("the queue is made", lambda: set(classes(net, "a")) == {0})
        openvswitch.run(
            "tc", "filter", "add", "dev", port.name, "parent", "1:", "protocol", "ip", "prio", "7", "u32",
            "match", "ip", "dport", "80", "0xffff", "flowid", "1:1",
        )  # fmt: skip
        before = classes(net, "a"), filters(net, "a")
        running()
        (found, other) = reported(control, want(control, port, port_of(net, "b")), problems=1)
        assert "QoS of somebody else" in found.problem + other.problem
        assert (classes(net, "a"), filters(net, "a")) == before
        assert set(classes(net, "b")) == {0, 1, 10}
        reported(control, want(control))
        assert (classes(net, "a"), filters(net, "a")) == before
    finally:
        running.stop()
        net.vsctl("--", "clear", "port", port.name, "qos", "--", "--all", "destroy", "qos")
        net.vsctl("--all", "destroy", "queue")


def test_somebody_elses_filters_on_our_classes_are_left_alone(net, control, running):
    running()
    port = port_of(net, "a")
    reported(control, want(control, port))
    words = ["dev", port.name, "parent", "1:", "protocol", "ip", "prio", "7", "u32"]
    openvswitch.run("tc", "filter", "add", *words, "match", "ip", "dport", "80", "0xffff", "flowid", "1:2")
    reported(control, want(control, port_of(net, "a", QUEUES[:2])))
    assert sum("pref 7 " in line for line in filters(net, "a")) == 1
    assert len(filters(net, "a")) == 3


def test_a_port_that_is_not_there_is_said(net, control, running):
    running()
    ghost = PortQueues(Dpid(DPID), PortNo(99), "ghost", 300 * MBIT, 0, QUEUES)
    found = reported(control, want(control, port_of(net, "a"), ghost), problems=1)
    assert {port.name: port.problem for port in found if port.problem} == {
        "ghost": "the switch's host has no port of this name"
    }


def test_a_controller_that_was_away_is_told_again_and_queues_stay_meanwhile(net, control, running, monkeypatch):
    monkeypatch.setattr(agent_module, "LAST_RETRY_S", 0.3)
    server = HttpServer(control, HttpSettings(port=0))
    server.start()
    running(controller=f"http://127.0.0.1:{server.port}")
    port = port_of(net, "a")
    version = want(control, port)
    reported(control, version)
    address = server.port
    server.stop()
    control.reports.clear()
    assert set(classes(net, "a")) == {0, 1, 10}
    again = HttpServer(control, HttpSettings(port=address))
    again.start()
    try:
        reported(control, version)
        reported(control, want(control))
    finally:
        running.stop()
        again.stop()


def test_what_the_controller_is_not_sure_of_stays_and_is_kept_as_it_was(net, control, running):
    """It has just started, or the switch has lost its connection to it."""
    port = port_of(net, "a")
    running()
    reported(control, want(control, port))
    whole, marked = classes(net, "a"), filters(net, "a")
    control.reports.clear()
    control.want(QueuesWanted(()))
    until("the agent has looked", lambda: control.reports)
    assert (classes(net, "a"), filters(net, "a")) == (whole, marked)
    openvswitch.run("tc", "filter", "delete", "dev", port.name, "parent", "1:")
    until("filters are back", lambda: filters(net, "a") == marked)
    running.stop()
    control.reports.clear()
    running()  # an agent that begins while the controller knows nothing leaves them, too
    until("the agent has looked", lambda: control.reports)
    assert (classes(net, "a"), filters(net, "a")) == (whole, marked)
    undecided = QueuesWanted((port_of(net, "b"),), frozenset({Dpid(DPID)}), frozenset({(Dpid(DPID), port.name)}))
    control.want(undecided)
    reported(control, undecided.version)
    assert (set(classes(net, "b")), classes(net, "a"), filters(net, "a")) == ({0, 1, 10}, whole, marked)
    reported(control, want(control))
    assert (classes(net, "a"), classes(net, "b")) == ({}, {})


def test_no_database_is_said(net, server, monkeypatch):
    monkeypatch.setattr(agent_module, "FIRST_DATABASE_S", 0.3)
    with pytest.raises(DatabaseError, match=r"no-such\.sock: no answer .*agent\.database"):
        Agent(settings(net, server.port, database="unix:/no-such.sock")).run()

"""A policy, all the way: the controller, an agent, two switches, and packets that go through the queues it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request

import controllers
import openvswitch
import pytest
from openvswitch import until

from trunkline_controller.queues.agent.tc import TrafficControl

pytestmark = [
    pytest.mark.switch,
    pytest.mark.skipif(bool(openvswitch.missing()), reason=openvswitch.missing()),
]

POLICY = """\
name: {name}
queues:
  q0: {{ number: 0, dscp: 0 }}
  q1: {{ number: 1, dscp: 11, priority: 1 }}
  q2: {{ number: 2, dscp: 3, priority: 7 }}
default: q0
ports:
  hosts: &all
    rate: 300mbit
    queues: {{ q0: {{ max: 50mbit }}, q1: {{ min: 200mbit, max: {most} }}, q2: {{ max: 5mbit }} }}
  switches: *all
roles:
  nodemanager: [10.0.0.1, 10.0.0.2]
categories:
  shuffle: {shuffle}
  iperf: {{ queue: q2, match: [{{ port: 5001 }}] }}
"""
BYTES = 400_000


class Agent:
    """A process of its own, as at a switch's host."""

    def __init__(self, directory, net, controller):
        config, log = directory / "agent.toml", directory / "agent.log"
        config.write_text(f'[agent]\ncontroller = "{controller.url}"\ndatabase = "{net.database}"\ncheck_s = 1\n')
        self.config = str(config)
        with log.open("ab") as out:
            self.process = subprocess.Popen(self.words(), env=environment(), stdout=out, stderr=out)

    def words(self, *more):
        return [sys.executable, "-m", "trunkline_controller", "agent", "--config", self.config, *more]

    def end(self):
        self.process.terminate()
        return self.process.wait(openvswitch.GIVE_UP_S)


def environment():
    return {**os.environ, "PYTHONPATH": str(controllers.ROOM)}


def put(controller, text):
    request = urllib.request.Request(
        f"{controller.url}v1/policy", text.encode(), {"Content-Type": "application/yaml"}, method="PUT"
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def modes(controller):
    """The mode of each queue of each port."""
    return [queue["mode"] for queue in controller.get("v1/queues?limit=1000")["queues"]]


def sent(interfaces):
    traffic = TrafficControl()
    try:
        return {name: dict(traffic.sent_bytes(name)) for name in interfaces}
    finally:
        traffic.close()


def classes_of(interface):
    return openvswitch.run("tc", "class", "show", "dev", interface, "classid", "1:2")


def transfer(server, client, port):
    """Up to BYTES from client to server, by TCP: iperf3 leaves unsent what waits when it has written them."""
    serving = server.start("iperf3", "-s", "-1", "-p", str(port))
    try:
        until("iperf3 listens", lambda: f":{port} " in server.run("ss", "-ltn"))
        client.run("iperf3", "-c", server.address, "-p", str(port), "-n", str(BYTES))
        serving.wait(openvswitch.GIVE_UP_S)
    finally:
        serving.kill()
        serving.wait()


def test_packets_go_through_the_queues_that_the_policy_says(tmp_path):
    with openvswitch.network(tmp_path) as net, controllers.running(tmp_path / "c") as controller:
        net.switch("s1", 1, [controller.target()])
        net.switch("s2", 2, [controller.target()])
        ends = net.link("s1", "s2")
        a, b = net.host("a", "s1", "10.0.0.1"), net.host("b", "s2", "10.0.0.2")
        path = [ends[0], b.port]  # what a sends to b goes out here
        back = [ends[1], a.port]
        agent = Agent(tmp_path, net, controller)
        try:
            until("the network is known", lambda: controller.status()["links"] == 1)
            until("a reaches b", lambda: a.pings(b))
            put(controller, POLICY.format(name="one", most="210mbit", shuffle="q1"))
            until(
                "marks are in force at all ports",
                lambda: modes(controller) == ["dscp"] * 12,
            )

            def rises(port):
                before = sent(path + back)
                transfer(b, a, port)
                after = sent(path + back)
                return [{n: after[i][n] - before[i][n] for n in after[i]} for i in path], [
                    {n: after[i][n] - before[i][n] for n in after[i]} for i in back
                ]

            def through(queue, port):
                there, again = rises(port)
                for rise in there:
                    assert rise[queue] > BYTES // 4, (port, rise)
                    assert all(rise[n] < BYTES // 4 for n in rise if n != queue), (port, rise)  # probes, perhaps
                for rise in again:  # acknowledgements, too
                    assert rise[queue] > 1_000, (port, rise)

            through(2, 5001)
            through(1, 13562)
            through(0, 7777)

            put(controller, POLICY.format(name="two", most="100%", shuffle="q2"))
            until("the new rate is in force", lambda: "ceil 300Mbit" in classes_of(b.port))
            through(2, 13562)

            assert agent.end() == 0
            through(2, 13562)  # nothing needs the agent while nothing changes

            request = urllib.request.Request(f"{controller.url}v1/policy", method="DELETE")
            with urllib.request.urlopen(request, timeout=30):
                pass
            agent = Agent(tmp_path, net, controller)
            until("no port has queues", lambda: sent(path) == {name: {} for name in path})
            assert a.pings(b)
            with pytest.raises(urllib.error.HTTPError) as refused:
                put(controller, POLICY.format(name="three", most="250mbit", shuffle="q3"))
            assert refused.value.code == 422
            assert "queue of category shuffle is 'q3'" in refused.value.read().decode()
            assert controller.get("v1/policy")["policy"] is None
        finally:
            agent.process.kill()
            agent.process.wait()


def test_a_restart_of_controller_and_agent_takes_no_queue_away(tmp_path):
    with openvswitch.network(tmp_path) as net:
        controller = controllers.start(tmp_path / "c")
        agents = []

        def records():
            return sorted(net.vsctl("--columns=_uuid", "--bare", "list", "queue").split())

        try:
            net.switch("s1", 1, [controller.target()])
            net.switch("s2", 2, [controller.target()])
            net.link("s1", "s2")
            net.host("a", "s1", "10.0.0.1")
            until("the network is known", lambda: controller.status()["links"] == 1)
            agents.append(Agent(tmp_path, net, controller))
            put(controller, POLICY.format(name="one", most="210mbit", shuffle="q1"))
            log = tmp_path / "agent.log"
            until("queues are made", lambda: len(records()) == 9)  # three of each port
            made = records()
            assert agents[0].end() == 0
            log.unlink()
            controller.kill()
            for name in net.switches:
                net.control(name, [])  # as where they try again only later
            controller = controllers.start(tmp_path / "c", controller.openflow_port)
            agents.append(Agent(tmp_path, net, controller))
            until("the agent has been told something", lambda: "ports, " in log.read_text())
            assert records() == made
            for name in net.switches:
                net.control(name, [controller.target()])
            until("the agent is told of all ports", lambda: ": 3 ports" in log.read_text())
            assert records() == made
        finally:
            controller.kill()
            for agent in agents:
                agent.process.kill()
                agent.process.wait()

"""Dynamic control from a job's word to a real switch's flow entries, and what becomes of them when things end."""

from __future__ import annotations

import urllib.request

import controllers
import openvswitch
import pytest
import resourcemanager
from openvswitch import until

from trunkline_controller.flows.entry import COOKIE, Owner

pytestmark = [
    pytest.mark.switch,
    pytest.mark.skipif(bool(openvswitch.missing()), reason=openvswitch.missing() or "-"),
]

APP = "application_1700000000000_0001"
HOSTS = [f"10.0.0.{n}" for n in range(1, 5)]
POLICY = """
name: test
queues:
  q0: { number: 0, dscp: 0, priority: 4 }
  lifted: { number: 1, dscp: 10, priority: 1 }
default: q0
ports:
  hosts:
    rate: 100mbit
    queues:
      q0: { min: 10mbit, max: 100mbit }
      lifted: { min: 50mbit, max: 100mbit }
roles:
  namenode: [10.0.0.9]
  resourcemanager: [10.0.0.9]
  nodemanager: [10.0.0.0/28]
categories:
  shuffle: q0
  other: q0
"""
LIFT = f"cookie=0x{COOKIE >> 48:x}{Owner.LIFT:04x}"


def settings(rm):
    return f'[dynamic]\nenabled = true\nresourcemanager = ["{rm.url}"]\npoll_s = 0.2\nsilent_s = 2.0\nhold_s = 0.5\n'


def lifted(net):
    """The match of each lift's flow entry, of connections to the reducer."""
    found = [flow for flow in net.flows("s1") if LIFT in flow]
    return sorted(word for flow in found for word in flow.replace(" ", ",").split(",") if word.startswith("nw_dst="))


def test_a_stragglers_flows_are_lifted_in_the_switch_and_given_back(tmp_path):
    with resourcemanager.running() as rm, openvswitch.network(tmp_path / "net") as net:
        rm.runs((APP, "MAPREDUCE"))
        rm.mapreduce(APP, [30, 30, 30, 5], HOSTS)
        first = controllers.start(tmp_path / "state", more=settings(rm))
        port = first.openflow_port
        try:
            net.switch("s1", 1, [first.target()])
            until("a switch", lambda: first.status()["converged"] and first.status()["switches"] == 1)
            put(first, POLICY)
            until("a lift", lambda: lifted(net) == ["nw_dst=10.0.0.4"])
            (decision,) = first.get("v1/decisions")["decisions"]
            assert (decision["host"], decision["from_queue"], decision["to_queue"]) == ("10.0.0.4", "q0", "lifted")

            rm.mapreduce(APP, [100, 5, 100, 100], HOSTS)
            until("another lift", lambda: lifted(net) == ["nw_dst=10.0.0.2"])

            rm.all_answer = lambda handler: handler.reply(200, b"<html>")
            until("no lift", lambda: lifted(net) == [])
            alerts = [alert["what"] for alert in first.status()["alerts"]]
            assert any("not what the REST documentation says" in what for what in alerts)
            assert "silent" in first.get("v1/decisions")["decisions"][0]["why"]

            rm.all_answer = None
            until("a lift again", lambda: lifted(net) == ["nw_dst=10.0.0.2"])
        finally:
            first.kill()
        assert lifted(net) == ["nw_dst=10.0.0.2"]  # flows outlive who made them

        rm.runs()
        second = controllers.start(tmp_path / "state", port=port, more=settings(rm))
        try:
            until("the lifts of the one before to go", lambda: lifted(net) == [])
        finally:
            assert second.end() == 0


def put(controller, policy):
    request = urllib.request.Request(
        f"{controller.url}v1/policy", data=policy.encode(), method="PUT", headers={"Content-Type": "application/yaml"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        assert answer.status == 200

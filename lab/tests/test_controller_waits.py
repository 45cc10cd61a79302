"""What the lab's controller waits for, and what it leaves behind when it fails; no network is made."""

import urllib.error

import pytest

from trunkline_lab.controller import Controller
from trunkline_lab.net import topology_file

TOPOLOGY = topology_file.named("qos-fig5")


class Switch:
    """A switch that knows whether it has the lab's rates; `broken`: the command that takes them away fails."""

    def __init__(self, name, *, broken=False):
        self.name, self.broken, self.rates = name, broken, True

    def no_rates(self):
        if self.broken:
            raise OSError("no database")
        self.rates = False

    def has_rates(self):
        return self.rates

    def plain_rates(self, ports):
        assert ports
        self.rates = True


class Answering(Controller):
    """A controller whose answers are told beforehand: `queues` one after the other, the last of them for good."""

    def __init__(self, tmp_path, *, policy=None, queues=((),), switches=()):
        super().__init__(None, None, TOPOLOGY, tmp_path)
        self.policy, self.modes_told, self.own, self.did = policy, list(queues), switches, []

    def start_controller(self):
        self.did.append("start")

    def stop_controller(self):
        self.did.append("stop")

    def wait_converged(self, hosts=0):
        self.did.append("converged")

    def ask(self, path, method="GET", body=None):
        if method == "PUT":
            raise urllib.error.URLError("connection refused")
        if path == "/v1/policy":
            return {"policy": self.policy, "applied": None}
        self.did.append("queues")
        told = self.modes_told.pop(0) if len(self.modes_told) > 1 else self.modes_told[0]
        at = {"dpid": "0000000000000001", "port": 1}
        return {"queues": [{"mode": mode, "at": at} for mode in told]}

    def _switches(self):
        return list(self.own)


def test_a_restart_under_a_policy_waits_until_all_queues_are_shown_to_have_effect(tmp_path):
    queues = [(), ("unknown", "dscp"), ("dscp", "none"), ("dscp", "dscp")]
    controller = Answering(tmp_path, policy={"name": "p"}, queues=queues)
    controller.restart({"dynamic": {"enabled": True}})
    assert controller.did == ["stop", "start", "converged", *["queues"] * 4]
    assert controller.modes() == ["dscp"]


def test_a_restart_without_a_policy_waits_for_no_queues(tmp_path):
    controller = Answering(tmp_path)
    controller.restart({})
    assert controller.did == ["stop", "start", "converged"]


@pytest.mark.parametrize("broken", [False, True])
def test_links_have_their_rates_again_after_a_policy_that_got_no_answer(tmp_path, broken):
    switches = [Switch("s1"), Switch("s2", broken=broken), Switch("s3")]
    with pytest.raises(OSError, match="no database" if broken else "connection refused"):
        Answering(tmp_path, switches=switches).apply("name: p")
    assert all(switch.rates for switch in switches)


def test_a_ports_only_queue_is_in_force_when_the_switch_has_its_rate(tmp_path):
    class Later(Switch):
        asked = 0

        def has_rates(self):
            self.asked += 1
            return self.asked > 2

    switch = Later("s1")
    controller = Answering(tmp_path, policy={"name": "p"}, queues=[("unknown",)], switches=[switch])
    controller.restart({})
    assert (switch.asked, controller.did.count("queues")) == (3, 3)

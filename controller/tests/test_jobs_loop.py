"""Dynamic control with a ResourceManager and a network that the test holds in its hands."""

import socket
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import resourcemanager

from trunkline_controller.control import Applied
from trunkline_controller.controller import Controller, ControllerSettings
from trunkline_controller.jobs.control_loop import DynamicControl
from trunkline_controller.jobs.hosts import Hosts
from trunkline_controller.jobs.settings import DynamicSettings
from trunkline_controller.policy.model import Lift, Policy, PortClass, Queue, Role, Rule, Share
from trunkline_controller.refusal import SettingsError

APP = "application_1700000000000_0001"
HOSTS = [f"10.0.0.{n}" for n in range(1, 5)]
GIVE_UP_S = 60


def policy(nodemanagers=tuple(HOSTS), queues=("q0", "lifted")):
    known = {name: Queue(name, number, 8 * number) for number, name in enumerate(queues)}
    shares = {name: Share(10 + number, 100) for number, name in enumerate(queues)}
    classes = {"hosts": PortClass("hosts", 100, shares)}
    roles = {Role.NODEMANAGER: nodemanagers, Role.RESOURCEMANAGER: ("127.0.0.1",)}
    rules = (Rule("shuffle", "tcp", source_port=13562),)
    return Policy("test", known, classes, {"shuffle": "q0"}, rules, roles, "q0")


class Network:
    """What lifts are in force, and how that came."""

    def __init__(self):
        self.now_policy = policy()
        self.version = 1
        self.in_force = frozenset()
        self.said = []
        self.broken = None
        self.changed = threading.Condition()

    def policy(self):
        return (self.now_policy, Applied(self.version, "test", 0, "", "", 0)) if self.now_policy else None

    def lift(self, lifts):
        if self.broken:
            raise self.broken
        had = self.now_policy.queues if self.now_policy else ()
        for lift in lifts:
            if lift.queue not in had:
                raise KeyError(lift.queue)
        with self.changed:
            flows = len(lifts ^ self.in_force)
            self.in_force = lifts
            self.said.append(lifts)
            self.changed.notify_all()
        return flows

    def wait_for(self, lifts):
        with self.changed:
            assert self.changed.wait_for(lambda: self.in_force == lifts, GIVE_UP_S)


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def rm():
    with resourcemanager.running() as fake:
        fake.runs((APP, "MAPREDUCE"))
        fake.mapreduce(APP, [30, 30, 30, 5], HOSTS, r3=1_500_000)
        yield fake


@pytest.fixture
def network():
    return Network()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def control(rm, network, clock):
    settings = DynamicSettings(True, resourcemanager=(rm.url,), timeout_s=10, silent_s=10, hold_s=5)
    return DynamicControl(settings, network, clock=clock)


def after(control, clock, seconds, steps=1):
    """Time passes; jobs are looked at and decided upon at the end of each step."""
    for _ in range(steps):
        clock.now += seconds / steps
        control.poll()
        control.decide()


LIFTED = frozenset({Lift("shuffle", "10.0.0.4", "lifted")})


def test_a_straggler_is_lifted_and_given_back_when_its_shuffle_is_over(rm, network, control, clock):
    after(control, clock, 1)
    assert network.in_force == LIFTED
    (decision,) = control.decisions()
    assert decision.reducer == "attempt_1700000000000_0001_r_000003_0"
    assert decision.why == (
        "15% of its shuffle fetched (1.5 MB), median of 4 reducers 90%: 75 points behind, at least 20"
    )
    rm.mapreduce(APP, [100, 100, 100, 60], HOSTS)
    after(control, clock, 1)
    assert network.in_force == frozenset()
    assert [d.why for d in control.decisions()] == ["its shuffle is over: lifted for 1 s", decision.why]
    assert control.decided == 2
    assert network.said == [LIFTED, frozenset()]


def test_what_has_not_changed_is_not_said_again(network, control, clock):
    after(control, clock, 20, steps=20)
    assert network.said.count(LIFTED) == 1


def test_a_job_that_ended_is_given_back(rm, network, control, clock):
    after(control, clock, 1)
    rm.runs()
    after(control, clock, 1)
    assert network.in_force == frozenset()
    assert control.decisions()[0].why == "its job has ended"
    assert not control.alerts()


@pytest.mark.parametrize(
    ("reply", "says"),
    [
        (lambda handler: handler.reply(503, b""), "answers 503"),
        (lambda handler: handler.reply(200, b"<html>"), "not what the REST documentation says"),
        (lambda handler: handler.reply(200, b"", Content_Length=str(10 << 30)), "10737418240 bytes"),
        (lambda handler: handler.reply(302, b"", Location="http://example.org/"), "which is not its own"),
        (lambda handler: handler.connection.shutdown(socket.SHUT_RDWR), "http://127.0.0.1"),
    ],
)
def test_without_a_resourcemanager_lifts_are_given_back_an_alert_says_so_and_it_goes_on(
    rm, network, clock, reply, says
):
    settings = DynamicSettings(True, resourcemanager=(rm.url,), timeout_s=10, silent_s=10, hold_s=5)
    control = DynamicControl(settings, network, clock=clock)
    after(control, clock, 1)
    assert network.in_force == LIFTED
    rm.all_answer = reply
    after(control, clock, 1)
    (alert,) = control.alerts()
    assert says in alert.what
    assert "see whether it runs" in alert.remedy
    assert network.in_force == LIFTED  # once is no silence
    after(control, clock, 12, steps=3)
    assert network.in_force == frozenset()
    assert "silent" in control.decisions()[0].why
    rm.all_answer = None
    after(control, clock, 10, steps=2)
    assert not control.alerts()
    assert network.in_force == LIFTED


def test_a_job_whose_status_is_silent_is_given_back_and_others_are_not(rm, network, control, clock):
    other = "application_1700000000000_0002"
    rm.runs((APP, "MAPREDUCE"), (other, "MAPREDUCE"))
    rm.mapreduce(other, [5, 30, 30, 30], HOSTS)
    after(control, clock, 2, steps=2)
    assert {lift.host for lift in network.in_force} == {"10.0.0.1", "10.0.0.4"}
    tasks = f"/proxy/{other}/ws/v1/mapreduce/jobs/{other.replace('application', 'job')}/tasks"
    rm.answers[tasks] = lambda handler: handler.reply(500, b"")
    after(control, clock, 12, steps=6)
    assert network.in_force == LIFTED
    (alert,) = control.alerts()
    assert other in alert.what
    rm.runs((APP, "MAPREDUCE"))
    after(control, clock, 1)
    assert not control.alerts()


def test_hosts_that_the_policy_does_not_name_are_never_lifted(rm, network, control, clock):
    network.now_policy = policy(nodemanagers=("10.0.0.1", "10.0.0.2"))
    after(control, clock, 5, steps=5)
    assert network.in_force == frozenset()
    assert not control.decisions()


def test_hosts_whose_shuffles_the_policy_does_not_tell_are_never_lifted(network, control, clock):
    network.now_policy = replace(policy(), rules=(Rule("shuffle", "tcp", destination="10.0.0.1", source_port=13562),))
    after(control, clock, 5, steps=5)
    assert network.in_force == frozenset()
    assert not control.decisions()


FILE = """\
queues: {q0: {number: 0, dscp: 0}, lifted: {number: 1, dscp: 11, priority: 1}}
default: q0
roles:
  nodemanager: [10.0.0.1]
"""


def test_who_applies_a_policy_under_which_nothing_can_be_lifted_is_told_so(tmp_path):
    controller = Controller(ControllerSettings(tmp_path))
    try:
        assert controller.check(FILE, "p.yaml").warnings == ()
        controller.dynamic = DynamicControl(DynamicSettings(True), controller)
        assert [str(problem) for problem in controller.check(FILE.replace("lifted", "fast"), "p.yaml").warnings] == [
            "p.yaml:1: dynamic control lifts nothing: policy p has no queue 'lifted', the one that [dynamic] queue "
            "names; add it to the policy, or set [dynamic] queue to one of fast, q0",
            "p.yaml:3: dynamic control lifts nothing: the policy names no ResourceManager to ask about jobs; give its "
            "host the role resourcemanager in the policy, or set [dynamic] resourcemanager",
        ]
        assert controller.check(FILE + "  resourcemanager: [10.0.0.9]\n", "p.yaml").warnings == ()
    finally:
        controller.stop()


def test_a_policy_without_the_queue_is_an_alert_and_no_lift(network, control, clock):
    network.now_policy = policy(queues=("q0", "q1"))
    after(control, clock, 1)
    (alert,) = control.alerts()
    assert "no queue 'lifted'" in alert.what
    assert "q0, q1" in alert.remedy
    assert not control.decisions()
    network.now_policy = policy()
    after(control, clock, 1)
    assert not control.alerts()
    assert network.in_force == LIFTED


def test_a_policy_without_a_resourcemanager_is_an_alert_where_none_is_set(network, clock):
    control = DynamicControl(DynamicSettings(True), network, clock=clock)
    network.now_policy = None
    after(control, clock, 1)
    assert [alert.what for alert in control.alerts()] == [
        "dynamic control lifts nothing: no policy is in force, so there is no queue to lift a shuffle into"
    ]
    network.now_policy = replace(policy(), roles={Role.NODEMANAGER: tuple(HOSTS)})
    after(control, clock, 1)
    (alert,) = control.alerts()
    assert alert.what == "the policy names no ResourceManager to ask about jobs"


def test_a_policy_that_is_cleared_ends_all_lifts(network, control, clock):
    after(control, clock, 1)
    network.now_policy = None
    after(control, clock, 1)
    assert network.in_force == frozenset()
    assert "no policy is in force" in control.alerts()[-1].what


@pytest.mark.parametrize("names", [None, ("q0", "q1")])
@pytest.mark.parametrize("budget", [1.0, 100.0])
def test_lifts_whose_queue_is_gone_end_at_once_whatever_they_would_cost(rm, network, clock, names, budget):
    settings = DynamicSettings(
        True, resourcemanager=(rm.url,), timeout_s=10, silent_s=10, hold_s=5, flow_changes_per_s=budget
    )
    control = DynamicControl(settings, network, clock=clock)
    rm.mapreduce(APP, [90, 90, 90, 5, 5], [*HOSTS, "10.0.0.1"])
    after(control, clock, 20, steps=4)
    assert len(network.in_force) == 2
    network.now_policy = policy(queues=names) if names else None
    network.version, network.in_force = 2, frozenset()  # as the controller does
    after(control, clock, 0.1)
    assert network.in_force == frozenset()
    assert {decision.why for decision in control.decisions()[:2]} == {
        "the policy no longer allows it: it has no such queue"
    }
    network.now_policy, network.version = policy(), 3
    after(control, clock, 20, steps=4)
    assert len(network.in_force) == 2


def test_a_policy_that_changes_while_lifts_are_said_is_no_fault(network, control, clock):
    control.poll()
    lift, known = network.lift, network.now_policy

    def changed_meanwhile(lifts):
        network.now_policy = None
        return lift(lifts)

    network.lift = changed_meanwhile
    control.decide()
    assert network.in_force == frozenset()
    network.lift, network.now_policy = lift, known
    control.decide()
    assert network.in_force == LIFTED


def test_lifts_that_another_policy_ended_in_between_are_in_force_again(network, control, clock):
    after(control, clock, 1)
    network.in_force, network.version = frozenset(), 3
    after(control, clock, 1)
    assert network.in_force == LIFTED


def test_what_the_network_refused_is_said_again(network, control, clock):
    network.broken = KeyError("lifted")
    control.poll()
    with pytest.raises(KeyError):
        control.decide()
    network.broken = None
    control.decide()
    assert network.in_force == LIFTED


def test_the_policys_resourcemanager_is_asked_where_none_is_named(rm, network, clock, monkeypatch):
    monkeypatch.setattr("trunkline_controller.jobs.control_loop.DEFAULT_PORT", rm.server_port)
    control = DynamicControl(DynamicSettings(True, timeout_s=10), network, clock=clock)
    after(control, clock, 1)
    assert network.in_force == LIFTED


def test_lifts_are_given_back_while_a_resourcemanager_keeps_the_poll_waiting(rm, network):
    """By the clock on the wall, whose give-up is generous: the poll waits for longer than the test does."""
    settings = DynamicSettings(True, resourcemanager=(rm.url,), poll_s=0.05, timeout_s=10 * GIVE_UP_S, silent_s=0.5)
    control = DynamicControl(settings, network)
    control.start()
    try:
        network.wait_for(LIFTED)
        rm.all_answer = rm.never
        network.wait_for(frozenset())
    finally:
        rm.over.set()
        control.stop()
    assert "silent" in control.decisions()[0].why


def test_stopping_gives_all_back(rm, network):
    control = DynamicControl(DynamicSettings(True, resourcemanager=(rm.url,), poll_s=0.05, timeout_s=10), network)
    control.start()
    network.wait_for(LIFTED)
    control.stop()
    assert network.in_force == frozenset()


def test_names_of_hosts_are_looked_up_once_and_a_few_at_a_time():
    asked = []

    def lookup(name):
        asked.append(name)
        if name == "nowhere":
            raise OSError("no such host")
        return ("fe80::7%eth0", "10.0.0.7")

    hosts = Hosts(lookup)
    hosts.learn(0, ["h7", "10.0.0.1", "h7", "nowhere", "a b", "x" * 400, "$(id)", "[fd00::1]"])
    assert asked == ["h7", "nowhere"]
    assert hosts.addresses("h7") == ("10.0.0.7",)
    assert hosts.addresses("10.0.0.1") == ("10.0.0.1",)
    assert hosts.addresses("[fd00::1]") == ("fd00::1",)
    assert hosts.addresses("nowhere") == hosts.addresses("a b") == ()
    hosts.learn(29, ["h7", "nowhere"])
    assert asked == ["h7", "nowhere"]
    hosts.learn(31, ["h7", "nowhere"])
    assert asked == ["h7", "nowhere", "nowhere"]
    hosts.learn(301, ["h7"])
    assert asked[-1] == "h7"
    asked.clear()
    hosts.learn(1000, [f"n{n}" for n in range(10_000)])
    assert len(asked) == 16
    for turn in range(1000):
        hosts.learn(2000 + turn, [f"m{turn}-{n}" for n in range(16)])
    assert len(hosts._found) == 4096


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"poll_s": 0.0}, "dynamic.poll_s: 0 is out of range; write a number from 0.1 to 3600"),
        ({"timeout_s": float("nan")}, "dynamic.timeout_s"),
        ({"max_lifted": 0}, "dynamic.max_lifted"),
        ({"flow_changes_per_s": 0.5}, "dynamic.flow_changes_per_s"),
        ({"return_lag": 0.3}, "dynamic.return_lag: 0.3 is not below lift_lag, 0.2"),
        ({"silent_s": 2.0, "poll_s": 5.0}, "dynamic.silent_s"),
        ({"resourcemanager": ("rm:8088",)}, "dynamic.resourcemanager: 'rm:8088' is no address"),
        ({"resourcemanager": ("http://rm:8088/cluster",)}, "dynamic.resourcemanager"),
        ({"resourcemanager": ("http://rm:99999",)}, "dynamic.resourcemanager"),
        ({"ca_file": Path("/nowhere/ca.pem")}, "dynamic.ca_file: /nowhere/ca.pem: No such file"),
    ],
)
def test_settings_that_cannot_be_are_refused(changed, says):
    DynamicSettings(True).check()
    with pytest.raises(SettingsError) as refused:
        DynamicSettings(True, **changed).check()
    assert str(refused.value).startswith(says)
    assert refused.value.remedy

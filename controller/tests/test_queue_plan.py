"""Which queues each port should have, of a policy and the ports that there are."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from trunkline_controller.net.topology import Dpid, End, Host, Link, Mac, Port, PortNo, Switch, Topology
from trunkline_controller.policy.file import parse
from trunkline_controller.policy.model import Share
from trunkline_controller.queues import plan
from trunkline_controller.queues import planned as planned_module
from trunkline_controller.queues.planned import Planned
from trunkline_controller.queues.wanted import QueuesWanted

LOCAL = 0xFFFFFFFE
QUEUES = "queues: {q0: {number: 0, dscp: 0}, q1: {number: 1, dscp: 11, priority: 1}}\ndefault: q0\n"


def port(number, name, speed=10**9):
    return Port(PortNo(number), name, Mac(f"02:00:00:00:00:{number & 255:02x}"), True, speed)


def topology():
    """s1 -- s2; a host at each, at port 2; port 3 is empty."""
    switches = {}
    for dpid in (1, 2):
        ports = {n: port(n, f"eth{n}") for n in (1, 2, 3)} | {LOCAL: port(LOCAL, f"s{dpid}")}
        switches[Dpid(dpid)] = Switch(Dpid(dpid), f"s{dpid}", ports)
    hosts = {Mac(f"m{d}"): Host(Mac(f"m{d}"), End(Dpid(d), PortNo(2)), (f"10.0.0.{d}",)) for d in (1, 2)}
    link = Link.between(End(Dpid(1), PortNo(1)), End(Dpid(2), PortNo(1)))
    edges = frozenset(End(Dpid(d), PortNo(n)) for d in (1, 2) for n in (2, 3))
    return Topology(switches, frozenset({link}), hosts, edges)


def just_connected():
    """The same switches, with nothing found out yet."""
    return Topology(topology().switches)


def rates(found: QueuesWanted):
    return {(p.dpid, p.name): {q.name: (q.min_bit_s, q.max_bit_s) for q in p.queues} for p in found.ports}


def test_ports_toward_hosts_and_switches_have_their_classes():
    policy = parse(
        QUEUES + "ports: {hosts: {rate: 300mbit, queues: {q1: {min: 10%, max: 200mbit}}},"
        " switches: {queues: {q1: {min: 20%, max: 80%}}}}"
    )
    found = plan.wanted(policy, topology())
    host = {"q0": (0, 300_000_000), "q1": (30_000_000, 200_000_000)}
    switch = {"q0": (0, 10**9), "q1": (200_000_000, 800_000_000)}
    assert rates(found) == {(d, f"eth{n}"): switch if n == 1 else host for d in (1, 2) for n in (1, 2, 3)}
    first = found.ports[0]
    assert (first.port, first.rate_bit_s, first.default) == (1, 10**9, 0)
    assert [(q.number, q.dscp, q.priority) for q in first.queues] == [(0, 0, 4), (1, 11, 1)]


def test_named_ports_go_before_patterns_and_those_before_directions():
    policy = parse(
        QUEUES + "ports: {hosts: {rate: 1mbit}, switches: {rate: 2mbit}, some: {glob: 's[13]/eth?', rate: 3mbit},"
        " one: {ports: [s1/eth2, 0000000000000002/eth2], rate: 4mbit}}"
    )
    found = {(p.dpid, p.name): p.rate_bit_s // 10**6 for p in plan.wanted(policy, topology()).ports}
    assert found == {
        (1, "eth1"): 3, (1, "eth2"): 4, (1, "eth3"): 3, (2, "eth1"): 2, (2, "eth2"): 4, (2, "eth3"): 1,
    }  # fmt: skip


def test_without_policy_or_classes_of_ports_no_port_has_queues():
    assert plan.wanted(None, topology()).ports == ()
    assert plan.wanted(parse(QUEUES), topology()).ports == ()
    only_switches = parse(QUEUES + "ports: {switches: {rate: 1gbit}}")
    assert {p.name for p in plan.wanted(only_switches, topology()).ports} == {"eth1"}


def test_a_cable_that_is_pulled_for_a_moment_changes_no_queue():
    policy = parse(QUEUES + "ports: {hosts: {rate: 1mbit}, switches: {rate: 2mbit}}")
    whole = topology()
    before = plan.wanted(policy, whole)
    pulled = replace(whole, links=frozenset())
    assert plan.wanted(policy, pulled) != before
    assert plan.wanted(policy, pulled, before) == before
    at = End(Dpid(1), PortNo(1))
    host = {Mac("m9"): Host(Mac("m9"), at, ())}
    now = plan.wanted(policy, replace(pulled, hosts=host), before)
    assert rates(now)[1, "eth1"] == {"q0": (0, 10**6), "q1": (0, 10**6)}


def test_a_port_has_no_class_by_direction_until_it_is_known_where_it_leads():
    policy = parse(
        QUEUES + "ports: {hosts: {rate: 1mbit}, switches: {rate: 2mbit}, one: {ports: [s1/eth2], rate: 4mbit}}"
    )
    found = plan.wanted(policy, just_connected())
    assert {(p.dpid, p.name) for p in found.ports} == {(1, "eth2")}
    assert found.undecided == {(1, "eth1"), (1, "eth3"), (2, "eth1"), (2, "eth2"), (2, "eth3")}
    assert plan.wanted(policy, topology()).undecided == frozenset()
    for without in (QUEUES, QUEUES + "ports: {one: {ports: [s1/eth2], rate: 4mbit}}"):
        assert plan.wanted(parse(without), just_connected()).undecided == frozenset()  # none of them can get queues


BOTH = frozenset({Dpid(1), Dpid(2)})
NONE = frozenset()


def test_a_switch_that_was_away_for_long_has_what_it_had_until_its_cables_are_found():
    policy = parse(QUEUES + "ports: {hosts: {rate: 1mbit}, switches: {rate: 2mbit}}")
    planned = Planned()
    assert planned.update(policy, topology(), BOTH)
    whole = planned.wanted
    assert whole.of([Dpid(1)]).switches == {1}
    assert planned.update(policy, Topology(), NONE)
    assert planned.wanted.of([Dpid(1)]) == QueuesWanted(())
    assert planned.update(policy, just_connected(), BOTH)
    assert rates(planned.wanted) == rates(whole)
    # It is back alone: to its port toward the other one nothing comes in, as if hosts were there.
    alone = replace(topology(), links=NONE, edges=topology().edges | {End(Dpid(1), PortNo(1))})
    planned.update(policy, alone, frozenset({Dpid(1)}))
    assert rates(planned.wanted)[1, "eth1"] == rates(whole)[1, "eth1"]
    assert planned.update(None, just_connected(), BOTH)
    assert planned.wanted == QueuesWanted((), BOTH)  # a policy that was taken away takes queues away, at once


def test_what_is_remembered_of_switches_that_went_is_bounded(monkeypatch):
    monkeypatch.setattr(planned_module, "MAX_AWAY", 4)
    policy = parse(QUEUES + "ports: {hosts: {rate: 1mbit}, switches: {rate: 2mbit}}")
    planned = Planned()
    planned.update(policy, topology(), BOTH)
    planned.update(policy, Topology(), NONE)
    planned.update(policy, just_connected(), BOTH)
    assert len(planned.wanted.ports) == 4
    assert len(planned.wanted.undecided) == 2


def test_nothing_new_is_no_change():
    policy, network, planned = parse(QUEUES + "ports: {hosts: {rate: 1mbit}}"), topology(), Planned()
    assert planned.update(policy, network, BOTH)
    assert not planned.update(policy, network, BOTH)
    assert planned.update(policy, network, frozenset({Dpid(1)}))


def test_what_a_controller_is_not_sure_of_stays_as_it_was_sure_of_it():
    policy = parse(QUEUES + "ports: {hosts: {rate: 1mbit}, switches: {rate: 2mbit}}")
    before = replace(plan.wanted(policy, topology()), switches=BOTH)
    assert QueuesWanted(()).over(before) == before
    cleared = QueuesWanted((), frozenset({Dpid(1)})).over(before)
    assert cleared == replace(before.of([Dpid(2)]), switches=BOTH)
    unknown = QueuesWanted((), frozenset({Dpid(1)}), frozenset({(Dpid(1), "eth1")})).over(before)
    assert unknown.undecided == {(1, "eth1")}


def test_what_ports_cannot_give_is_said_with_the_classs_line():
    policy = parse(
        QUEUES + "ports:\n  hosts:\n    queues: {q0: {min: 400mbit}, q1: {min: 700mbit, max: 80%}}\n"
        "  switches:\n    queues: {q0: {min: 400mbit, max: 30%}}\n"
    )
    found = plan.check(policy, topology(), "p.yaml")
    assert [(p.line, p.what) for p in found] == [
        (6, "max of queue q0 is 300mbit at port s1/eth1, less than its min of 400mbit"),
        (4, "minimum rates of port class hosts sum to 1.1gbit, and port s1/eth2 has 1gbit"),
    ]
    assert all(problem.remedy for problem in found)


def test_a_port_whose_rate_nobody_knows_is_said_and_left_alone():
    mute = {Dpid(1): Switch(Dpid(1), "s1", {PortNo(1): port(1, "eth1", 0)})}
    network = Topology(mute, edges=frozenset({End(Dpid(1), PortNo(1))}))
    policy = parse(QUEUES + "ports: {hosts: {}}")
    assert plan.wanted(policy, network) == QueuesWanted(())
    (problem,) = plan.check(policy, network, "p")
    assert "port s1/eth1 does not say its rate" in problem.what


def test_no_glob_takes_long_for_a_name():
    """Of a name of 255 characters a backtracking pattern of this kind takes longer than anybody waits."""
    name = "a" * 255
    switch = Switch(Dpid(1), name, {PortNo(1): port(1, "eth1")})
    policy = parse(QUEUES + f"ports: {{some: {{glob: '{'*a' * 49}*b', rate: 1mbit}}}}")
    assert plan.wanted(policy, Topology({Dpid(1): switch})).ports == ()


@given(st.integers(16_000, 10**11), st.integers(0, 10**12), st.integers(16_000, 10**12), st.floats(0, 100))
@settings(max_examples=100, deadline=None)
def test_no_queue_has_more_than_its_port(rate, least, most, percent):
    for share in (Share(least, most), Share(0, 0, percent, percent), Share(least, 0, None, 100.0)):
        low, high = plan.share_at(share, rate)
        assert 0 <= low <= rate
        assert 0 <= high <= rate


def test_the_version_is_of_what_is_wanted_and_of_nothing_else():
    policy = parse(QUEUES + "ports: {hosts: {}}")
    found = plan.wanted(policy, topology())
    assert QueuesWanted(found.ports[::-1]).version == found.version
    assert QueuesWanted(found.ports[1:]).version != found.version
    assert QueuesWanted(found.ports, BOTH).version != found.version
    assert QueuesWanted(found.ports, undecided=frozenset({(Dpid(1), "eth4")})).version != found.version

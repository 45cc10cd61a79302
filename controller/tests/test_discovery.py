"""Discovery, told of events by a small simulated network with a clock of its own."""

from dataclasses import dataclass, field, replace

import pytest

from trunkline_controller.net.discovery import NO_OPENFLOW, Discovery
from trunkline_controller.net.hosts import EVERYBODY
from trunkline_controller.net.limits import Limits
from trunkline_controller.net.topology import End, Link, Port

A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
LIMITS = Limits(max_hosts=50, max_hosts_per_port=4, max_addresses_per_host=3)


@dataclass
class Simulation:
    """Switches 1, 2 … with `ports` ports each; LLDP travels by `cables`, hosts answer probes where they are."""

    cables: dict[End, End] = field(default_factory=dict)
    answering: dict[str, End] = field(default_factory=dict)  # address to the port where it answers, as `mac_of` says
    mac_of: dict[str, str] = field(default_factory=dict)
    now: float = 100.0
    unplugged: set[End] = field(default_factory=set)

    def __post_init__(self):
        self.discovery = Discovery(LIMITS)
        self.topologies = [self.discovery.topology()]

    def switch(self, dpid, ports=4, linked=(), version=4):
        described = [port(n) for n in range(1, ports + 1)]
        self.discovery.switch_connected(dpid, f"s{dpid}", described, self.now, version=version, linked=linked)

    def cable(self, one, other):
        one, other = End(*one), End(*other)
        self.cables |= {one: other, other: one}

    def ask(self, probes):
        for probe in probes:
            mac = self.mac_of.get(probe.address) if probe.mac == EVERYBODY else probe.mac
            if self.answering.get(probe.address) == probe.at and self.mac_of[probe.address] == mac:
                self.seen(probe.at, mac, probe.address)

    def seen(self, at, mac, address=None):
        self.ask(self.discovery.host_seen(End(*at) if isinstance(at, tuple) else at, mac, address, self.now))

    def host(self, at, mac, address):
        """A host that answers when it is asked."""
        self.answering[address], self.mac_of[address] = End(*at), mac
        self.seen(at, mac, address)

    def run(self, seconds):
        for _ in range(round(seconds * 10)):
            self.now += 0.1
            self.ask(self.discovery.tick(self.now))
            for origin in self.discovery.lldp_due(self.now):
                far = self.cables.get(origin)
                hears = far and far.dpid in self.discovery.connected()
                if hears and far not in self.unplugged and origin not in self.unplugged:
                    self.discovery.lldp_heard(far, origin, self.now)
            if self.discovery.topology() is not self.topologies[-1]:
                self.topologies.append(self.discovery.topology())

    def port(self, end, up):
        self.discovery.port_changed(end[0], port(end[1], up), self.now)

    @property
    def topology(self):
        return self.discovery.topology()

    @property
    def alarms(self):
        return [alarm.what for alarm in self.discovery.alarms.all()]


def port(number, up=True):
    return Port(number, f"eth{number}", f"02:ff:00:00:00:{number:02x}", up, 10**9)


def pair(version=4):
    """Two switches with a cable between their first ports, settled; a host each at their second ports."""
    net = Simulation()
    net.switch(1, version=version)
    net.switch(2, version=version)
    net.cable((1, 1), (2, 1))
    net.run(3)
    net.host((1, 2), A, "10.0.0.1")
    net.host((2, 2), B, "10.0.0.2")
    net.run(1)
    assert net.topology.links == {Link.between(End(1, 1), End(2, 1))}
    assert {mac: host.at for mac, host in net.topology.hosts.items()} == {A: End(1, 2), B: End(2, 2)}
    return net


def test_cables_become_links_and_the_other_ports_edges():
    net = pair()
    assert net.topology.edges == {End(d, p) for d in (1, 2) for p in (2, 3, 4)}
    assert net.discovery.settled()


def test_nothing_changes_while_nothing_happens():
    net = pair()
    before = net.topology
    net.run(120)
    assert net.topology is before


def test_a_host_that_speaks_before_its_port_is_known_is_learned_when_it_is():
    net = Simulation()
    net.switch(1)
    net.seen((1, 2), A, "10.0.0.1")
    assert not net.topology.hosts
    net.run(3)
    assert net.topology.hosts[A].addresses == ("10.0.0.1",)


def test_what_a_host_says_through_a_link_that_is_not_known_yet_puts_it_nowhere():
    net = Simulation()
    net.switch(1)
    net.switch(2)
    net.cable((1, 1), (2, 1))
    net.seen((1, 1), B, "10.0.0.2")
    net.run(5)
    assert not net.topology.hosts


def test_a_link_ends_when_lldp_is_lost_though_no_port_went_down():
    net = pair()
    net.unplugged = {End(1, 1)}
    net.run(10)
    assert not net.topology.links
    net.unplugged = set()
    net.run(10 * LIMITS.lldp_interval_s + 3)
    assert len(net.topology.links) == 1


def test_a_link_whose_port_goes_down_ends_at_once():
    net = pair()
    net.port((1, 1), up=False)
    assert not net.topology.links


def test_a_port_that_flaps_ten_times_a_second_is_left_out_until_it_holds():
    net = pair()
    changes = len(net.topologies)
    for _ in range(300):
        net.port((1, 1), up=False)
        net.run(0.1)
        net.port((1, 1), up=True)
    assert not net.topology.links
    # The port's own description changes with each flap; what paths are made of changed once.
    networks = [(t.links, t.edges, frozenset(t.hosts)) for t in net.topologies[changes:]]
    assert len(set(networks)) <= 2
    assert any("s1/eth1 went down" in what for what in net.alarms)
    net.run(40)
    assert len(net.topology.links) == 1
    net.run(60)
    assert not net.alarms


def test_a_host_stays_where_it_is_while_its_port_flaps():
    net = pair()
    for _ in range(50):
        net.port((1, 2), up=False)
        net.run(0.1)
        net.port((1, 2), up=True)
        net.run(0.1)
        assert net.topology.hosts[A].at == End(1, 2)


def test_a_host_moves_at_once_when_its_old_port_is_down():
    net = pair()
    net.port((1, 2), up=False)
    net.host((2, 3), A, "10.0.0.1")
    assert net.topology.hosts[A].at == End(2, 3)
    assert not net.alarms


def test_a_host_moves_when_it_no_longer_answers_at_its_old_port():
    net = pair()
    net.answering["10.0.0.1"] = End(2, 3)
    net.seen((2, 3), A, "10.0.0.1")
    assert net.topology.hosts[A].at == End(1, 2)
    net.run(1.5)
    assert net.topology.hosts[A].at == End(2, 3)


def test_a_host_whose_address_is_not_known_moves_when_it_no_longer_answers_at_its_old_port():
    net = Simulation()
    net.switch(1)
    net.discovery.host_remembered(End(1, 2), A, net.now)
    net.run(3)
    assert net.topology.hosts[A].at == End(1, 2)
    net.seen((1, 3), A)  # of no packet with an address: there is nothing to ask for
    net.run(1.5)
    assert net.topology.hosts[A].at == End(1, 2)
    net.run(10)
    net.host((1, 3), A, "10.0.0.1")
    net.run(1.5)
    assert net.topology.hosts[A].at == End(1, 3)


@pytest.mark.parametrize("answers", ["10.0.0.1", "fe80::ff:fe00:a"])  # the other may say what address it likes
def test_a_host_whose_address_is_not_known_keeps_its_place_from_another_with_its_mac_if_it_answers(answers):
    net = Simulation()
    net.switch(1)
    net.discovery.host_remembered(End(1, 2), A, net.now)
    net.run(3)
    net.answering[answers], net.mac_of[answers] = End(1, 2), A
    net.seen((1, 3), A, "10.0.0.1")
    net.run(1.5)
    assert net.topology.hosts[A].at == End(1, 2)
    assert any("two hosts with MAC address" in what for what in net.alarms)


def test_a_silent_host_is_looked_for_at_ports_that_come_up():
    net = pair()
    net.port((1, 2), up=False)
    net.port((2, 4), up=False)
    net.run(1)
    net.answering["10.0.0.1"] = End(2, 4)
    net.port((2, 4), up=True)
    net.run(3)
    assert net.topology.hosts[A].at == End(2, 4)


def test_two_hosts_with_one_mac_address_an_alarm_names_both_ports_and_the_first_keeps_it():
    net = pair()
    for _ in range(30):
        net.seen((2, 3), A, "10.0.0.66")
        net.run(1)
        assert net.topology.hosts[A].at == End(1, 2)
        assert net.topology.hosts[A].addresses == ("10.0.0.1",)
    assert net.alarms == [
        f"two hosts with MAC address {A}: at port s1/eth2 and at port s2/eth3; the one at s1/eth2 keeps it"
    ]


def test_two_hosts_with_one_address_an_alarm_names_both_and_neither_hijacks_the_other():
    net = pair()
    for _ in range(30):
        net.seen((2, 2), B, "10.0.0.1")
        net.run(1)
        assert net.discovery.hosts.holder("10.0.0.1").mac == A
    assert net.alarms == [
        f"two hosts with address 10.0.0.1: {A} at port s1/eth2 and {B} at port s2/eth2; the one at s1/eth2 keeps it"
    ]
    net.run(120)
    assert not net.alarms


def test_an_address_goes_to_another_host_when_its_holder_no_longer_answers():
    net = pair()
    del net.answering["10.0.0.1"]
    net.seen((2, 2), B, "10.0.0.1")
    net.run(1.5)
    assert net.discovery.hosts.holder("10.0.0.1").mac == B
    assert net.topology.hosts[A].addresses == ()


def test_a_claim_upon_a_host_of_a_switch_that_lost_its_connection_fails():
    net = pair()
    net.discovery.switch_gone(1, net.now)
    net.seen((2, 3), A, "10.0.0.1")
    net.run(2)
    assert net.topology.hosts[A].at == End(1, 2)


def test_lldp_at_a_port_with_a_host_makes_no_link():
    net = pair()
    net.discovery.lldp_heard(End(1, 2), End(2, 3), net.now)
    net.discovery.lldp_heard(End(2, 3), End(1, 2), net.now)
    assert len(net.topology.links) == 1
    assert any(A in what and "not taken for a link" in what for what in net.alarms)


def test_a_cable_between_two_ports_of_one_switch_is_an_alarm_and_takes_both_out_of_floods():
    net = Simulation()
    net.switch(1)
    net.cable((1, 1), (1, 2))
    net.run(5)
    assert net.topology.edges == {End(1, 3), End(1, 4)}
    assert not net.topology.links
    assert any("connected with each other" in what for what in net.alarms)


def test_a_switch_that_loses_its_connection_briefly_changes_nothing():
    net = pair()
    links, edges = net.topology.links, net.topology.edges
    net.discovery.switch_gone(2, net.now)
    net.run(LIMITS.switch_hold_s - 1)
    net.switch(2)
    net.run(20)
    assert all(t.links == links and t.edges == edges for t in net.topologies[-3:])
    assert not net.alarms


def test_a_switch_that_is_gone_for_long_takes_its_links_and_hosts_with_it_and_they_come_back():
    net = pair()
    net.discovery.switch_gone(2, net.now)
    net.run(LIMITS.switch_hold_s + LIMITS.lldp_timeout_s + 1)
    assert set(net.topology.switches) == {1}
    assert not net.topology.links
    assert set(net.topology.hosts) == {A}
    assert any("s2" in what and "not connected" in what for what in net.alarms)
    net.switch(2)
    net.run(10 * LIMITS.lldp_interval_s + 3)
    assert len(net.topology.links) == 1
    assert set(net.topology.hosts) == {A, B}


LINKED = frozenset({Link.between(End(1, 1), End(2, 1))})
PLACES = {A: End(1, 2), B: End(2, 2)}


def places(net):
    return {mac: host.at for mac, host in net.topology.hosts.items()}


def test_a_host_that_speaks_while_its_switch_is_away_neither_moves_nor_keeps_the_link_from_coming_back():
    net = pair()
    net.discovery.switch_gone(2, net.now)
    for _ in range(30):  # it forwards on: what hosts behind it say comes in by the cable
        net.seen((1, 1), B, "10.0.0.2")
        net.seen((1, 1), "02:00:00:00:00:0c", "10.0.0.3")
        net.run(0.5)
        assert End(1, 1) not in net.topology.edges
        assert set(net.topology.hosts) <= {A, B}
    net.switch(2)
    net.run(3)
    assert net.topology.links == LINKED
    assert places(net) == PLACES
    assert net.discovery.settled()
    assert not net.alarms


def test_a_switch_that_was_away_for_longer_than_its_port_is_kept_for_it_has_its_link_and_hosts_back():
    net = pair()
    net.discovery.switch_gone(2, net.now)
    net.run(LIMITS.switch_hold_s + LIMITS.adopt_hold_s + 2)
    net.answering["10.0.0.2"] = End(1, 1)
    net.seen((1, 1), B, "10.0.0.2")
    net.run(2)
    assert places(net) == {A: End(1, 2), B: End(1, 1)}
    net.switch(2)
    net.discovery.host_remembered(End(2, 2), B, net.now)
    net.answering["10.0.0.2"] = End(2, 2)
    net.run(10 * LIMITS.lldp_interval_s + 3)
    assert net.topology.links == LINKED
    assert places(net) == PLACES
    assert not net.alarms


def test_the_cable_of_a_bridge_that_is_gone_leads_to_no_hosts_until_it_goes_down():
    net = pair(version=NO_OPENFLOW)
    net.discovery.switch_gone(2, net.now)
    net.run(LIMITS.switch_hold_s + LIMITS.lldp_timeout_s + 10 * LIMITS.adopt_hold_s)
    net.host((1, 1), B, "10.0.0.2")  # it forwards on
    net.run(2)
    assert End(1, 1) not in net.topology.edges
    assert places(net) == {A: End(1, 2)}
    assert net.discovery.settled()
    net.port((1, 1), up=False)
    net.port((1, 1), up=True)  # at another cable
    net.run(LIMITS.settle_s + 2)
    net.seen((1, 1), B, "10.0.0.2")
    net.run(2)
    assert places(net) == {A: End(1, 2), B: End(1, 1)}


def test_a_host_that_speaks_before_its_switch_is_back_after_a_restart_does_not_keep_its_link_from_being_found():
    net = Simulation()
    net.cable((1, 1), (2, 1))
    net.switch(1, linked={1})
    net.run(2)
    net.seen((1, 1), B, "10.0.0.2")
    net.run(2)
    assert not net.discovery.settled()
    assert not net.topology.hosts
    net.switch(2, linked={1})
    net.discovery.host_remembered(End(2, 2), B, net.now)
    net.run(3)
    assert net.topology.links == LINKED
    assert net.discovery.settled()
    assert places(net) == {B: End(2, 2)}
    assert not net.alarms


def test_a_port_whose_groups_neighbour_does_not_come_back_leads_to_hosts_in_the_end():
    net = Simulation()
    net.switch(1, linked={1})
    net.seen((1, 1), B, "10.0.0.2")
    net.run(LIMITS.adopt_hold_s + 1)
    assert places(net) == {B: End(1, 1)}
    assert net.discovery.settled()


def test_hosts_that_were_found_through_a_switch_before_it_connected_do_not_keep_its_link_from_being_found():
    net = Simulation()
    net.cable((1, 1), (2, 1))
    net.switch(1)
    net.run(3)
    net.seen((1, 1), B, "10.0.0.2")
    assert places(net) == {B: End(1, 1)}
    net.switch(2)
    net.discovery.host_remembered(End(2, 2), B, net.now)
    net.run(3)
    assert net.topology.links == LINKED
    assert places(net) == {B: End(2, 2)}
    assert not net.alarms


def test_a_port_that_was_a_link_and_went_down_is_as_any_other():
    net = pair()
    net.unplugged = {End(1, 1), End(2, 1)}
    net.port((1, 1), up=False)
    net.port((1, 1), up=True)
    net.run(2)
    net.seen((1, 1), "02:00:00:00:00:0c", "10.0.0.3")
    net.discovery.lldp_heard(End(1, 1), End(2, 1), net.now)
    assert not net.topology.links
    assert any("not taken for a link" in what for what in net.alarms)


def test_a_host_does_not_keep_a_link_whose_lldp_was_lost_from_coming_back():
    net = pair()
    net.unplugged = {End(1, 1)}
    net.run(LIMITS.lldp_timeout_s + LIMITS.adopt_hold_s + 2)
    net.seen((1, 1), "02:00:00:00:00:0c", "10.0.0.3")
    net.seen((2, 1), "02:00:00:00:00:0d", "10.0.0.4")
    assert len(net.topology.hosts) == 4
    # Another port's LLDP, that a host hands on, makes no link of it.
    net.discovery.lldp_heard(End(1, 1), End(2, 3), net.now)
    assert any("not taken for a link" in what for what in net.alarms)
    net.unplugged = set()
    net.run(10 * LIMITS.lldp_interval_s + 3)
    assert net.topology.links == LINKED
    assert places(net) == PLACES


def test_hosts_are_remembered_from_flows_where_no_link_is_found():
    net = Simulation()
    net.switch(1)
    net.switch(2)
    net.cable((1, 1), (2, 1))
    net.discovery.host_remembered(End(1, 1), B, net.now)
    net.discovery.host_remembered(End(2, 2), B, net.now)
    net.run(5)
    assert net.topology.hosts[B].at == End(2, 2)


def test_made_up_hosts_and_addresses_fill_no_memory():
    net = pair()
    for number in range(1000):
        net.seen((1, 3), f"06:00:00:00:{number >> 8:02x}:{number & 255:02x}", f"10.9.{number >> 8}.{number & 255}")
        net.seen((1, 2), A, f"10.8.{number >> 8}.{number & 255}")
    assert len(net.discovery.hosts) == 2 + LIMITS.max_hosts_per_port
    assert len(net.topology.hosts[A].addresses) == LIMITS.max_addresses_per_host
    for dpid in range(3, 40):
        net.switch(dpid)
    net.run(3)
    for number in range(1000):
        net.seen((3 + number % 37, 1), f"06:00:00:01:{number >> 8:02x}:{number & 255:02x}", None)
    assert len(net.discovery.hosts) == LIMITS.max_hosts
    assert any("50 hosts are known, the limit" in what for what in net.alarms)


def test_a_silent_host_is_forgotten_only_when_it_does_not_answer():
    net = pair()
    del net.answering["10.0.0.2"]
    net.discovery.limits = replace(LIMITS)
    for _ in range(80):
        net.now += LIMITS.host_timeout_s / 40
        net.run(2)
    assert set(net.topology.hosts) == {A}

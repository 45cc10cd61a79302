"""The switches that the other tests rely on."""

import openvswitch
import pytest

pytestmark = pytest.mark.switch


@pytest.mark.skipif(bool(openvswitch.missing()), reason=openvswitch.missing() or "-")
def test_two_switches_carry_between_hosts_what_their_flows_say_and_nothing_else(tmp_path):
    with openvswitch.network(tmp_path) as net:
        net.switch("s1", 1)
        net.switch("s2", 2)
        a, b = net.host("a", "s1"), net.host("b", "s2")
        net.link("s1", "s2")
        assert not a.pings(b)
        for switch in ("s1", "s2"):
            net.ofctl("add-flow", switch, "actions=NORMAL")
        openvswitch.until("a reaches b", lambda: a.pings(b))
        assert net.flows("s1") == ["actions=NORMAL"]
        assert net.port_number(a.port) != 0
    left = openvswitch.run("ip", "link") + openvswitch.run("ip", "netns")
    assert net.prefix not in left

"""The controller, as a process, and real switches: what goes wrong, and what must happen."""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import controllers
import openvswitch
import pytest
import trustme
from openvswitch import until

pytestmark = [
    pytest.mark.switch,
    pytest.mark.skipif(bool(openvswitch.missing()), reason=openvswitch.missing() or "-"),
]

COUNT = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 9999)); s.settimeout(20)
print("ready", flush=True)
got = []
while b"end" not in got:
    got.append(s.recv(100))
print(len([g for g in got if g == b"once"]))
"""
SEND = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
for data in [b"once"] * 10 + [b"end"]:
    s.sendto(data, ("10.0.255.255", 9999))
"""


RENEW = """
import socket, sys
own, mac = (bytes.fromhex(m.replace(":", "")) for m in (sys.argv[1], sys.argv[3]))
address, asked = map(socket.inet_aton, (sys.argv[2], sys.argv[4]))
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("eth0", 0))
s.send(mac + own + bytes.fromhex("08060001080006040001") + own + address + bytes(6) + asked)
"""


@contextlib.contextmanager
def network(directory, links, versions=None, **settings):
    """A controller and switches s1, s2 … with these links; a host on each switch, called a, b …"""
    with controllers.running(directory / "first", **settings) as controller:
        with openvswitch.network(directory) as net:
            names = sorted({name for link in links for name in link})
            for number, name in enumerate(names, 1):
                protocols = (versions or {}).get(name, "OpenFlow13,OpenFlow15")
                net.switch(name, number, [controller.target()], protocols)
            for one, other in links:
                net.link(one, other)
            hosts = [net.host(chr(ord("a") + number), name) for number, name in enumerate(names)]
            settled(controller, len(names), len(links))
            yield controller, net, hosts


def settled(controller, switches, links):
    def is_so():
        status = controller.status()
        return (status["switches"], status["links"], status["converged"]) == (switches, links, True)

    until(f"{switches} switches and {links} links are known, and have what they should", is_so)


def all_reach_all(hosts):
    return all(one.pings(other) for one in hosts for other in hosts if one is not other)


def log_messages(net):
    """From now on the switches log each OpenFlow message."""
    net.appctl("vlog/set", "vconn:console:dbg")
    return (net.directory / "ovs-vswitchd.log").stat().st_size


def flow_mods(net, since):
    """Changes of flows and groups that the switches received since then, renewals of the lease apart."""
    with (net.directory / "ovs-vswitchd.log").open("rb") as log:
        log.seek(since)
        lines = log.read().decode(errors="replace").splitlines()
    return [line for line in lines if re.search(r"received: OFPT_(FLOW|GROUP)_MOD", line) and "0x88b5" not in line]


def apply(controller, text):
    request = urllib.request.Request(f"{controller.url}v1/policy", text.encode(), method="PUT")
    request.add_header("Content-Type", "text/yaml")
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def alerts(controller):
    return [alert["what"] for alert in controller.status()["alerts"]]


def test_hosts_of_a_leaf_spine_network_reach_each_other_and_a_broadcast_arrives_once(tmp_path):
    links = [("s1", "s3"), ("s1", "s4"), ("s2", "s3"), ("s2", "s4"), ("s1", "s2")]
    versions = {"s1": "OpenFlow13", "s4": "OpenFlow15", "s2": "OpenFlow13,OpenFlow14,OpenFlow15"}
    with network(tmp_path, links, versions) as (controller, net, hosts):
        until("all hosts reach each other", lambda: all_reach_all(hosts))
        assert "OpenFlow 1.3," in controller.log()
        assert "OpenFlow 1.5," in controller.log()
        group = net.ofctl("dump-groups", "s3")
        assert re.search(r"type=select,bucket=\S*actions=output:1,bucket=\S*actions=output:2", group), group
        for number, host in enumerate(hosts, 1):
            host.run("ip", "address", "add", f"fd00::{number}/64", "dev", "eth0", "nodad")
        until("all reach each other by IPv6", lambda: all(host.pings("fd00::4") for host in hosts[:3]))
        counting = [host.start("python3", "-c", COUNT) for host in hosts[1:]]
        for process in counting:
            assert process.stdout.readline() == "ready\n"
        hosts[0].run("python3", "-c", SEND)
        assert [process.communicate()[0] for process in counting] == ["10\n"] * (len(hosts) - 1)


def transferred(client):
    """Bytes that a host's interface has sent."""
    return int(client.run("cat", "/sys/class/net/eth0/statistics/tx_bytes"))


def test_a_transfer_goes_on_while_the_controller_is_killed_and_back_again_it_changes_nothing(tmp_path):
    with network(tmp_path, [("s1", "s2"), ("s2", "s3"), ("s1", "s3")]) as (controller, net, (a, b, c)):
        assert all_reach_all([a, b, c])
        settled(controller, 3, 3)
        server = c.start("iperf3", "-s", "-1")
        until("the server listens", lambda: ":5201" in c.run("ss", "-ltn"))
        client = a.start("iperf3", "-c", c.address, "-t", "120", "-b", "20M", "--connect-timeout", "5000")
        until("bytes travel", lambda: transferred(a) > 1_000_000)
        controller.kill()
        before = transferred(a)
        until("bytes travel on without a controller", lambda: transferred(a) > before + 2_000_000)
        assert b.pings(c), "a known host is reached without a controller"
        since = log_messages(net)
        net.control("s2", ["tcp:127.0.0.1:1"])  # nobody listens there, so it is away for a while
        patient = "[network]\nlldp_interval_s = 0.5\nsettle_s = 0.5\nadopt_hold_s = 120\n"
        with controllers.running(tmp_path / "first", port=controller.openflow_port, quick=False, more=patient) as again:
            until("two switches are back", lambda: again.status()["switches"] == 2)
            until("the link between them is found", lambda: again.status()["links"] == 1)
            b.run("python3", "-c", RENEW, b.mac, b.address, a.mac, a.address)
            time.sleep(2)  # several times as long as a port that nothing is known of is kept out of use
            net.control("s2", [controller.target()])
            settled(again, 3, 3)
            until("the hosts are found again in the flows", lambda: again.status()["hosts"] == 3)
            until("the network is known", lambda: "the network is known: 3 switches, 3 links, 3 hosts" in again.log())
            settled(again, 3, 3)
            assert flow_mods(net, since) == []
            before = transferred(a)
            until("bytes travel on", lambda: transferred(a) > before + 2_000_000)
            client.terminate()
            server.terminate()
            client.communicate()
            server.communicate()
            # A host known from flows alone is not driven out by one with its MAC address and any IP address.
            d = net.host("d", "s2")

            def named():
                d.run("python3", "-c", RENEW, b.mac, "10.0.77.7", c.mac, c.address)
                return any(f"two hosts with MAC address {b.mac}" in what for what in alerts(again))

            until("an alert names both ports", named)
            assert c.pings(b)
            # A change from now on is made as ever.
            until("a new host is reached", lambda: d.pings(a))
            assert flow_mods(net, since) != []


def test_switches_vanish_and_return_and_what_others_made_is_left_alone(tmp_path):
    with network(tmp_path, [("s1", "s2")]) as (controller, net, (a, b)):
        until("the hosts reach each other", lambda: all_reach_all([a, b]))
        net.ofctl("add-flow", "s1", "table=4,priority=77,tcp,tp_dst=7,actions=drop")
        net.kill_vswitchd()
        until("the switches are missed", lambda: controller.status()["switches"] == 0)
        until("an alert says so", lambda: any("s1" in what and "not connected" in what for what in alerts(controller)))
        net.start_vswitchd()
        settled(controller, 2, 1)
        until("the hosts reach each other again", lambda: all_reach_all([a, b]))
        assert not [what for what in alerts(controller) if "not connected" in what]
        # Somebody else's entries stay; ours that somebody took away come back.
        foreign = "table=4,priority=77,tcp,tp_dst=7,actions=drop"
        net.ofctl("add-flow", "s1", foreign)
        net.ofctl("del-flows", "s1", "cookie=0x7472000400000000/-1")
        until("our entries are back", lambda: sum("cookie=0x74720004" in flow for flow in net.flows("s1")) >= 4)
        assert any("priority=77" in flow for flow in net.flows("s1"))
        assert a.pings(b)
        # A switch that is cut off from the controller forwards on.
        net.control("s2", ["tcp:127.0.0.1:1"])  # nobody listens there
        until("the controller misses it", lambda: controller.status()["switches"] == 1)
        assert a.pings(b, 3)
        net.control("s2", [controller.target()])
        settled(controller, 2, 1)
        assert controller.end() == 0
        assert a.pings(b)
        assert not any("0x88b5" in flow for flow in net.flows("s1")), "its lease is given back"


def test_a_port_that_flaps_ten_times_a_second_costs_few_changes(tmp_path):
    links = [("s1", "s2"), ("s2", "s3"), ("s1", "s3")]
    with network(tmp_path, links) as (controller, net, (a, b, c)):
        until("the hosts reach each other", lambda: all_reach_all([a, b, c]))
        settled(controller, 3, 3)
        since = log_messages(net)
        cable = next(name for name in net._interfaces if re.search(r"l\d+a$", name))
        for _ in range(30):
            openvswitch.run("ip", "link", "set", cable, "down")
            time.sleep(0.05)
            openvswitch.run("ip", "link", "set", cable, "up")
            time.sleep(0.05)
        assert a.pings(b), "there is another way"
        until("an alert names the port", lambda: any("went down" in what for what in alerts(controller)))
        # Each port's end has been down thirty times; the way over s3 was taken once, and back once at most.
        assert len(flow_mods(net, since)) <= 30
        assert flow_mods(net, since) != []


def test_two_hosts_with_one_address_are_an_alert_and_neither_hijacks_the_other(tmp_path):
    with network(tmp_path, [("s1", "s2")]) as (controller, net, (a, b)):
        until("the hosts reach each other", lambda: all_reach_all([a, b]))
        evil = net.host("evil", "s2", mac="02:00:00:00:66:66")
        until("the new host reaches others", lambda: evil.pings(b))
        evil.run("ip", "address", "add", f"{a.address}/16", "dev", "eth0")
        claim_raw = (
            "import socket,sys; s=socket.socket(socket.AF_PACKET,socket.SOCK_RAW); s.bind(('eth0',0));"
            "m=bytes.fromhex('020000006666'); ip=socket.inet_aton(sys.argv[1]);"
            "s.send(b'\\xff'*6+m+b'\\x08\\x06\\x00\\x01\\x08\\x00\\x06\\x04\\x00\\x01'+m+ip+bytes(6)+ip)"
        )

        def named():
            evil.run("python3", "-c", claim_raw, a.address)
            return [what for what in alerts(controller) if f"two hosts with address {a.address}" in what]

        (what,) = until("an alert names both", named)
        assert a.mac in what
        assert evil.mac in what
        assert "s1/" in what
        assert "s2/" in what
        b.run("ip", "neighbour", "flush", "all")
        assert b.pings(a)
        assert f"lladdr {a.mac}" in b.run("ip", "neighbour", "show", a.address)
        # Its own MAC address is not taken either: frames for it still go to its port.
        stolen = claim_raw.replace("020000006666", a.mac.replace(":", ""))

        def named_too():
            evil.run("python3", "-c", stolen, a.address)
            return [what for what in alerts(controller) if f"two hosts with MAC address {a.mac}" in what]

        until("an alert names both ports", named_too)
        assert b.pings(a, 3)
        # With its old port gone, a host is found at the new one.
        net.move(a, "s2")
        until("the host is reached where it is now", lambda: b.pings(a))


def test_of_two_controllers_the_second_stands_by_and_takes_over_when_the_first_is_gone(tmp_path):
    with network(tmp_path, [("s1", "s2")]) as (first, net, (a, b)):
        until("the hosts reach each other", lambda: all_reach_all([a, b]))
        with controllers.running(tmp_path / "second") as second:
            for name in net.switches:
                net.control(name, [first.target(), second.target()])
            until("the second stands by", lambda: second.status()["role"] == "standby")
            settled(first, 2, 1)
            assert first.status()["role"] == "master"
            assert any("this controller stands by" in what for what in alerts(second))
            asked = "v1/agent/queues?dpid=0000000000000001&dpid=0000000000000002"
            until("the first tells agents of both", lambda: len(first.get(asked)["switches"]) == 2)
            assert second.get(asked)["switches"] == []
            with pytest.raises(urllib.error.HTTPError, match="409"):
                apply(second, "queues: {q0: {number: 0, dscp: 0}}\ndefault: q0\n")
            c = net.host("c", "s2")
            until("the first answers for a new host", lambda: c.pings(a))
            first.kill()
            until("the second takes over", lambda: second.status()["role"] == "master")
            settled(second, 2, 1)
            until("it tells agents of both", lambda: len(second.get(asked)["switches"]) == 2)
            until("it knows the hosts from the flows", lambda: second.status()["hosts"] == 3)
            assert all_reach_all([a, b, c])


def test_a_full_table_is_an_alert_with_the_way_out_and_the_rest_works(tmp_path):
    with network(tmp_path, [("s1", "s2")]) as (controller, net, (a, b)):
        until("the hosts reach each other", lambda: all_reach_all([a, b]))
        settled(controller, 2, 1)
        there = sum("table=4" in flow for flow in net.flows("s1"))
        bridge = net.bridge("s1")
        limit = ["--", "--id=@t", "create", "flow_table", f"flow_limit={there + 1}", "overflow_policy=refuse"]
        net.vsctl("set", "bridge", bridge, "flow_tables:4=@t", *limit)
        c, d = net.host("c", "s1"), net.host("d", "s2")
        until("c is reached", lambda: c.pings(b))
        d.run("ping", "-c", "1", "-W", "1", b.address, check=False)

        def named():
            d.run("ping", "-c", "1", "-W", "1", a.address, check=False)
            return [alert for alert in controller.status()["alerts"] if "is full" in alert["what"]]

        (alert,) = until("an alert names the table", named)
        assert alert["what"] == "switch s1: flow table 4 (FORWARD) is full"
        assert "flow_limit" in alert["remedy"]
        assert all_reach_all([a, b, c]), "what fits works"
        until("the other switch has all", lambda: d.pings(b))
        net.vsctl("clear", "bridge", bridge, "flow_tables")
        e = net.host("e", "s2")  # something new to have: what was refused is tried again
        until("all works when there is room", lambda: e.pings(a) and d.pings(a))
        until("the alert is over", lambda: not [what for what in alerts(controller) if "is full" in what])


def test_who_is_no_switch_is_sent_away_and_the_switches_are_served(tmp_path):
    with controllers.running(tmp_path / "c") as controller:
        sockets = [socket.create_connection(("127.0.0.1", controller.openflow_port)) for _ in range(50)]
        sockets[0].sendall(b"GET / HTTP/1.1\r\n\r\n")
        sockets[1].sendall(b"\x04\x00\xff\xff" + bytes(8) * 1000)
        sockets[2].sendall(b"\x01\x00\x00\x08\x00\x00\x00\x01")
        for silent in sockets:
            silent.settimeout(30)
            while silent.recv(4096):
                pass
        with openvswitch.network(tmp_path) as net:
            net.switch("s1", 1, [controller.target()])
            until("a switch is served", lambda: controller.status()["switches"] == 1)
        assert controller.process.poll() is None


def test_switches_come_by_tls_where_it_is_asked_for_and_by_nothing_else(tmp_path):
    authority, stranger = trustme.CA(), trustme.CA()
    files = {}
    for name, issuer in (("controller", authority), ("switch", authority), ("stranger", stranger)):
        made = issuer.issue_cert(name, "127.0.0.1")
        files[name] = tmp_path / f"{name}.key", tmp_path / f"{name}.pem"
        made.private_key_pem.write_to_path(str(files[name][0]))
        for blob in made.cert_chain_pems:
            blob.write_to_path(str(files[name][1]), append=True)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    key, certificate = files["controller"]
    tls = f'certificate = "{certificate}"\nkey = "{key}"\nca_file = "{tmp_path}/ca.pem"\n'
    with controllers.running(tmp_path / "c", openflow=tls) as controller, openvswitch.network(tmp_path) as net:
        said = net.directory / "ovs-vswitchd.log"
        for name in ("stranger", "switch"):
            net.vsctl("set-ssl", *map(str, files[name]), str(tmp_path / "ca.pem"))
            if name == "stranger":
                net.switch("s1", 1, [controller.target().replace("tcp", "ssl")])
                net.switch("s2", 2, [controller.target()])
                with socket.create_connection(("127.0.0.1", controller.openflow_port)) as plain:
                    plain.sendall(b"\x04\x00\x00\x08\x00\x00\x00\x01")
                    plain.settimeout(60)
                    with contextlib.suppress(ConnectionError):
                        while plain.recv(4096):
                            pass
                until("the stranger is dropped", lambda: "connection dropped" in said.read_text())
                assert controller.status()["switches"] == 0
        until("the switch that shows its certificate is served", lambda: controller.status()["switches"] == 1)
        assert "switch s1 " in controller.log()
        assert "switch s2 " not in controller.log()


def test_a_second_controller_with_the_same_state_directory_refuses_to_start(tmp_path):
    with controllers.running(tmp_path / "c"):
        command = ["-m", "trunkline_controller", "--config", str(tmp_path / "c" / "controller.toml")]
        done = subprocess.run(
            [sys.executable, *command],
            cwd=controllers.ROOM,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.returncode == 1
    assert "another controller uses it; end that one, or give this one a state.directory of its own" in done.stderr

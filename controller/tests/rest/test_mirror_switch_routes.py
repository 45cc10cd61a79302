"""Agents of bridges: what they say and are told, as JSON."""

from __future__ import annotations

import json

import pytest
from client import Answer, Client
from fake_control import FakeControl
from prometheus_client.parser import text_string_to_metric_families

from trunkline_controller.http.mirror_switches import MAX_FAILED, MAX_HEARD, MAX_HOSTS, MAX_LLDP, MAX_PORTS
from trunkline_controller.mirror.bridge import BridgePoll, BridgeState, BridgeTold, Update
from trunkline_controller.mirror.bridge_entries import Copies, Copy, Segments
from trunkline_controller.mirror.entries import Connection
from trunkline_controller.net.topology import Port

DPID = "0000020000000009"
WHOLE = Connection.of("10.0.0.1", 40000, "10.0.0.2", 9866)
HOP = Connection.of("10.0.0.2", 41000, "10.0.0.3", 9866)
OF = {
    "port": 3,
    "marked": False,
    "source": {"address": "10.0.0.1", "port": 40000},
    "destination": {"address": "10.0.0.2", "port": 9866},
}


@pytest.fixture
def control() -> FakeControl:
    return FakeControl()


def poll(client: Client, name: str = "b1", **others: object) -> Answer:
    said = {"run": "1", "dpid": DPID} | others
    return client.ask("POST", f"/v1/mirror-switches/{name}", json.dumps(said), Content_Type="application/json")


def test_what_an_agent_says_is_read(client: Client, control: FakeControl):
    told = poll(client).json
    assert (told["announce"], told["lease_s"], told["entries"]) == (True, 15.0, [])
    answer = poll(
        client,
        seen=4,
        controller=told["controller"],
        wait_ms=250,
        ports=[{"number": 3, "name": "p3", "mac": "02:00:00:00:00:01", "up": True}],
        heard=[{"port": 4, "frame": "0180c2"}],
        hosts=[
            {"port": 3, "mac": "02:00:00:00:00:09"},
            {"port": 3, "mac": "02:00:00:00:00:09", "address": "::ffff:10.0.0.9"},
        ],
        copies_to=["10.0.0.3"],
        failed=[OF | {"why": "no\nroom"}],
    )
    assert answer.status == 200, answer.text
    said, wait_s = control.bridge_polls[-1]
    mac = "02:00:00:00:00:09"
    assert said == BridgePoll(
        "b1",
        "1",
        0x0200_0000_0009,
        4,
        (Port(3, "p3", "02:00:00:00:00:01"),),
        {4: b"\x01\x80\xc2"},
        ((3, mac, None), (3, mac, "10.0.0.9")),
        frozenset({"10.0.0.3"}),
        said.failed,
    )
    assert wait_s == 0.25
    assert list(said.failed) == [Segments(3, False, WHOLE)]
    # Versions of another run of the controller are others.
    poll(client, seen=4, controller="another")
    assert control.bridge_polls[-1][0].seen == -1
    assert control.bridge_polls[-1][0].ports is None
    poll(client, leaving=True)
    assert control.bridge_polls[-1][0].leaving


def test_what_it_is_told_is_what_the_agent_reads(client: Client, control: FakeControl):
    made = Copies(Segments(3, False, WHOLE), (Copy(4), Copy(5, 2, "02:00:00:00:00:03", HOP)))
    gone = Segments(4, True, WHOLE)
    control.bridge_told = BridgeTold(
        15.0,
        Update(7, 6, (made,), (gone,), True, frozenset({4, 2})),
        {4: b"\x01\x80", 3: b"\x02"},
        (((3, 5), b"\xff"),),
    )
    told = poll(client).json
    assert told.pop("controller")
    assert told == {
        "seen": 7,
        "lease_s": 15.0,
        "base": 6,
        "purge": True,
        "admits": [2, 4],
        "entries": [
            OF
            | {
                "copies": [
                    {"port": 4, "position": 0, "to": None, "connection": None},
                    {
                        "port": 5,
                        "position": 2,
                        "to": "02:00:00:00:00:03",
                        "connection": {
                            "source": {"address": "10.0.0.2", "port": 41000},
                            "destination": {"address": "10.0.0.3", "port": 9866},
                        },
                    },
                ]
            }
        ],
        "removed": [OF | {"port": 4, "marked": True}],
        "lldp": [{"port": 3, "frame": "02"}, {"port": 4, "frame": "0180"}],
        "send": [{"ports": [3, 5], "frame": "ff"}],
        "announce": False,
    }


PORT = {"number": 1, "name": "x", "mac": "02:00:00:00:00:01", "up": True}


def test_a_bridge_has_as_many_ports_as_linux_allows(client: Client, control: FakeControl):
    ports = [PORT | {"number": (1 << 31) - 1 - n, "name": f"{n:015}"} for n in range(1023)]
    assert poll(client, ports=ports).status == 200
    assert len(control.bridge_polls[-1][0].ports or ()) == 1023


@pytest.mark.parametrize(
    "wrong",
    [
        {"dpid": "9"},
        {"run": ""},
        {"wait_ms": 30_001},
        {"ports": [PORT | {"number": 0}]},
        {"ports": [PORT | {"mac": "02:00"}]},
        {"ports": [PORT] * (MAX_PORTS + 1)},
        {"heard": [{"port": 1, "frame": "0"}]},
        {"heard": [{"port": 1, "frame": "00" * (MAX_LLDP + 1)}]},
        {"heard": [{"port": 1, "frame": "00"}] * (MAX_HEARD + 1)},
        {"hosts": [{"port": 1, "mac": "02:00:00:00:00:0G"}]},
        {"hosts": [{"port": 1, "mac": "02:00:00:00:00:01", "address": "fe80::1%eth0"}]},
        {"hosts": [{"port": 1, "mac": "02:00:00:00:00:01"}] * (MAX_HOSTS + 1)},
        {"copies_to": ["node1"]},
        {"failed": [OF | {"why": "x"}] * (MAX_FAILED + 1)},
    ],
)
def test_what_is_wrong_is_refused(client: Client, control: FakeControl, wrong: dict[str, object]):
    assert poll(client, **wrong).status == 422
    assert control.bridge_polls == []


def test_a_name_is_one(client: Client):
    assert poll(client, "b%2F1").status in (404, 422)


def test_operators_see_the_bridges(client: Client, control: FakeControl):
    control.bridges = (BridgeState("b2", 2, 4, 1, 7, 0.5), BridgeState("b1", 1, 3, 0, 0, 0.25))
    assert client.get("/v1/mirror-switches").json == {
        "switches": [
            {"name": "b1", "dpid": f"{1:016x}", "ports": 3, "links": 0, "entries": 0, "polled_ago_s": 0.25},
            {"name": "b2", "dpid": f"{2:016x}", "ports": 4, "links": 1, "entries": 7, "polled_ago_s": 0.5},
        ]
    }
    families = text_string_to_metric_families(client.get("/metrics").text)
    found = {family.name: family.samples[0].value for family in families if family.samples}
    assert found["trunkline_mirror_bridges"] == 2

"""What Prometheus finds."""

import pytest
from client import Client
from fake_control import MBIT, START_S, TEXT, FakeControl
from prometheus_client.parser import text_string_to_metric_families

from trunkline_controller.control import Alert, FlowTotals
from trunkline_controller.net.topology import Dpid


def samples(client: Client) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def value(found: dict, name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


def test_the_network_is_counted_with_units_in_the_names(client: Client, control: FakeControl):
    control.alerts = (Alert(START_S, "a loop", "unplug one cable"),)
    client.put_policy(TEXT)
    found = samples(client)
    assert value(found, "trunkline_controller_role", role="master") == 1
    assert value(found, "trunkline_controller_role", role="standby") == 0
    assert value(found, "trunkline_controller_switches") == 6
    assert value(found, "trunkline_controller_alerts") == 1
    assert value(found, "trunkline_policy_version") == 1
    assert value(found, "trunkline_dynamic_decisions_total") == 0
    port = {"switch": "0000000000000011", "port": "2"}
    assert value(found, "trunkline_port_sent_bytes_total", **port) == 2_000_000
    assert value(found, "trunkline_port_received_bytes_total", **port) == 4_000_000
    assert value(found, "trunkline_port_capacity_bytes_per_second", **port) == 300 * MBIT / 8
    assert value(found, "trunkline_queue_sent_bytes_total", **port, queue="shuffle") == 2001
    assert value(found, "trunkline_queue_min_bytes_per_second", **port, queue="shuffle") == 200 * MBIT / 8
    assert value(found, "trunkline_queues", mode="set_queue") == 0
    assert sum(value(found, "trunkline_queues", mode=m) for m in ("dscp", "none", "unknown")) == 28 * 3
    assert value(found, "trunkline_flow_entries", switch="0000000000000011", owner="forward") == 12
    assert value(found, "trunkline_category_bytes", switch="0000000000000011", category="shuffle") == 13_000_000


def test_answers_are_counted_by_route(client: Client):
    for path in ("/v1/switches/0000000000000011/flows", "/v1/switches/0000000000000012/flows", "/no/1", "/no/2"):
        client.get(path)
    client.ask("BREW", "/no/3")
    client.get("/v1/status", Origin="http://evil.example")
    found = samples(client)
    name = "trunkline_http_requests_total"
    assert value(found, name, method="GET", path="/v1/switches/{dpid}/flows", status="200") == 2
    assert value(found, name, method="GET", path="other", status="404") == 2
    assert value(found, name, method="other", path="other", status="404") == 1
    assert value(found, name, method="GET", path="other", status="403") == 1


def test_names_from_the_network_do_not_break_the_format(client: Client, control: FakeControl):
    # Numbers tell switches and ports apart, so no name is a label; categories come from the policy.
    hostile = 'a"} 1\n# TYPE evil counter\nevil 1\n'
    control.flow_totals = lambda: (FlowTotals(Dpid(0x11), {}, {hostile: 1}),)
    found = samples(client)
    assert value(found, "trunkline_category_bytes", switch="0000000000000011", category=hostile) == 1
    with pytest.raises(KeyError):
        value(found, "evil")

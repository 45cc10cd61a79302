"""Bodies and paths of any kind: each is answered in words of HTTP, and nothing comes of what is not right."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from client import Client
from fake_control import FakeControl
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trunkline_controller.http.views.network import end_id, link_id, parse_link
from trunkline_controller.net.topology import Dpid, End, Link, PortNo
from trunkline_controller.queues.wanted import MAX_PROBLEM

MANY = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
PROBLEM = "application/problem+json"
REPORT = {"agent": "rack1", "version": "v", "ports": [{"dpid": "0000000000000011", "name": "eth1", "problem": "no"}]}

values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.just(10**400), st.floats(), st.text(max_size=12)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)),
    max_leaves=6,
)


def altered(report, changes):
    whole = json.loads(json.dumps(report))
    for in_port, key, value in changes:
        (whole["ports"][0] if in_port and isinstance(whole.get("ports"), list) else whole)[key] = value
    return json.dumps(whole).encode()


reports = st.one_of(
    st.binary(max_size=60),
    values.map(lambda value: json.dumps(value).encode()),
    st.lists(st.tuples(st.just(True), st.sampled_from(["dpid", "name", "problem", "x"]), values), max_size=3).map(
        lambda changes: altered(REPORT, changes)
    ),
    st.lists(st.tuples(st.just(False), st.sampled_from(["agent", "version", "x"]), values), max_size=3).map(
        lambda changes: altered(REPORT, changes)
    ),
)


@given(body=reports)
@MANY
def test_a_report_is_taken_or_refused(client: Client, control: FakeControl, body: bytes):
    control.reports.clear()
    answer = client.ask("POST", "/v1/agent/queues", body, Content_Type="application/json")
    assert answer.status in (204, 400, 422)
    assert len(control.reports) == (answer.status == 204)
    if answer.status != 204:
        assert answer.headers["content-type"] == PROBLEM
        assert answer.json["remedy"]
    for report in control.reports:
        assert len(report.agent) <= 255
        assert report.agent.isprintable()
        for port in report.ports:
            assert port.problem.isprintable()
            assert len(port.problem) <= MAX_PROBLEM


@given(body=st.one_of(st.binary(max_size=60), st.text(max_size=60).map(str.encode)), name=st.text(max_size=300))
@MANY
@pytest.mark.parametrize("method", ["PUT", "POST"])
def test_a_policy_is_taken_or_refused(client: Client, control: FakeControl, method: str, body: bytes, name: str):
    before = len(control.applied)
    path = "/v1/policy" if method == "PUT" else "/v1/policy/check"
    query = quote(name.encode(errors="replace"), safe="")
    answer = client.ask(method, f"{path}?name={query}", body, Content_Type="text/yaml")
    assert answer.status in (200, 400, 422)
    assert len(control.applied) - before == (method == "PUT" and answer.status == 200)
    if answer.status != 200:
        assert answer.headers["content-type"] == PROBLEM
        assert answer.json["remedy"]


@given(text=st.text(min_size=1, max_size=40), of=st.sampled_from(["links", "switches", "policy/history"]))
@MANY
def test_a_path_leads_somewhere_or_nowhere(client: Client, text: str, of: str):
    tail = "" if of == "policy/history" else "/flows"
    answer = client.get(f"/v1/{of}/{quote(text.encode(errors='replace'), safe='')}{tail}")
    assert answer.status in (404, 422)
    assert answer.headers["content-type"] == PROBLEM


numbers = st.integers(0, 2**32 - 1).map(PortNo)
ends = st.builds(End, st.integers(0, 2**64 - 1).map(Dpid), numbers)


@given(ends, ends)
def test_ids_of_links_are_read_as_they_are_written(one: End, other: End):
    assert parse_link(end_id(one)) == one
    if one != other:
        link = Link.between(one, other)
        assert parse_link(link_id(link)) == link


@given(
    st.one_of(st.text(max_size=40), st.from_regex(r"[0-9a-f]{16}:\d{1,10}(-[0-9a-f]{16}:\d{1,10})?", fullmatch=True))
)
def test_what_is_no_id_of_a_link_is_refused(text: str):
    try:
        parse_link(text)
    except ValueError:
        return
    assert set(text) <= set("0123456789abcdef:-")

"""Controller and agents need not be of one release: either it works, or it is said what is missing and the way out."""

from __future__ import annotations

import http.server
import json
import threading
from dataclasses import replace
from typing import ClassVar

import openvswitch
import pytest
from fake_control import FakeControl
from hypothesis import given
from hypothesis import strategies as st

from trunkline_controller import __version__
from trunkline_controller.http.server import HttpServer
from trunkline_controller.http.settings import HttpSettings
from trunkline_controller.http.views.agent import WantedView
from trunkline_controller.net.topology import Dpid, PortNo
from trunkline_controller.queues.agent import filters, rows
from trunkline_controller.queues.agent.agent import Agent
from trunkline_controller.queues.agent.client import Client, ControllerError, Told, told
from trunkline_controller.queues.agent.settings import AgentSettings
from trunkline_controller.queues.wanted import PortQueues, PortReport, QueuesReport, QueuesWanted, QueueWanted

QUEUE = QueueWanted("q1", 1, 11, 1, 200, 250)
WANTED = QueuesWanted(
    (PortQueues(Dpid(2), PortNo(2), "b", 1, 0, ()), PortQueues(Dpid(2**64 - 1), PortNo(1), "eth1", 300, 0, (QUEUE,))),
    frozenset({Dpid(2**64 - 1), Dpid(2)}),
    frozenset({(Dpid(2), "eth4")}),
)


def as_json(wanted: QueuesWanted) -> dict:
    return json.loads(WantedView.of(wanted, "run").model_dump_json())


def of(value) -> Told:
    return told("http://c", json.dumps(value).encode())


def test_what_is_wanted_goes_through_json():
    assert of(as_json(WANTED)) == Told(WANTED.version, WANTED, "run")


def test_an_older_controller_that_does_not_name_its_run_is_understood():
    value = as_json(WANTED)
    del value["controller"]
    assert of(value) == Told(WANTED.version, WANTED)


def test_what_a_newer_controller_says_beside_is_passed_over():
    value = as_json(WANTED) | {"version": "of-a-newer-one", "more": {"a": [1]}}
    for part in (*value["ports"], *value["ports"][1]["queues"], *value["undecided"]):
        part["more"] = 1
    assert of(value) == Told("of-a-newer-one", WANTED, "run")


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ((), "undecided"), ((), "switches"), ((), "version"), ((), "ports"), (("ports", 1), "default"),
        (("ports", 1, "queues", 0), "dscp"), (("undecided", 0), "name"),
    ],
)  # fmt: skip
def test_what_an_older_controller_does_not_say_is_named_with_the_way_out(path, field):
    value = part = as_json(WANTED)
    for step in path:
        part = part[step]
    del part[field]
    with pytest.raises(ControllerError) as refused:
        of(value)
    where = ".".join(map(str, (*path, field)))
    assert str(refused.value) == (
        f"http://c: {where} of its answer: Field required; run controller and agents of one release "
        f"(this agent is {__version__})"
    )


@pytest.mark.parametrize(
    ("field", "value"), [("dscp", 64), ("priority", 8), ("number", 61_440), ("min_bit_s", -1), ("max_bit_s", "fast")]
)
def test_a_queue_that_cannot_be_made_here_is_named(field, value):
    answer = as_json(WANTED)
    answer["ports"][1]["queues"][0][field] = value
    with pytest.raises(ControllerError, match=rf"ports\.1\.queues\.0\.{field} of its answer: .*one release"):
        of(answer)


values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=8,
)


@given(st.data())
def test_no_answer_crashes_an_agent(data):
    answer = as_json(WANTED)
    port = answer["ports"][1]
    for part in data.draw(st.lists(st.sampled_from([answer, port, port["queues"][0], answer["undecided"][0]]))):
        part[data.draw(st.sampled_from(sorted(part)))] = data.draw(values)
    try:
        wanted = of(answer).wanted
    except ControllerError:
        return
    for port in wanted.ports:
        rows.record(port)
        for at in filters.wanted(port):
            filters.key(*at)


@given(st.one_of(st.binary(max_size=40), st.text(alphabet='{}[]":,0e-+\\u ntrue', max_size=40).map(str.encode)))
def test_no_bytes_crash_an_agent(data):
    with pytest.raises(ControllerError, match=r"is this a controller|one release"):
        told("http://c", data)


class Newer(http.server.BaseHTTPRequestHandler):
    """A controller of another release, which names what it wants in its own way and never waits."""

    protocol_version = "HTTP/1.1"
    seen: ClassVar[list[str]] = []

    def do_GET(self):
        Newer.seen.append(self.path)
        body = json.dumps(as_json(WANTED) | {"version": "of-a-newer-one", "more": 1}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Counting(threading.Event):
    waits = 0

    def wait(self, timeout=None):
        self.waits += 1
        return super().wait(0)


def test_an_agent_hands_back_the_version_it_was_told_and_pauses_where_it_is_not_made_to_wait():
    Newer.seen = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Newer)
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    agent = Agent(AgentSettings(controller=f"http://127.0.0.1:{server.server_address[1]}"))
    agent._dpids = (Dpid(2),)
    agent._stopped = stopped = Counting()
    polling = threading.Thread(target=agent._poll, daemon=True)
    polling.start()
    openvswitch.until("many polls", lambda: len(Newer.seen) > 20)
    agent.stop()
    polling.join(openvswitch.GIVE_UP_S)
    server.shutdown()
    server.server_close()
    assert "&seen=&" in Newer.seen[0]
    assert all("&seen=of-a-newer-one&" in path for path in Newer.seen[1:])
    assert stopped.waits >= len(Newer.seen) - 3  # but after the first, and the one that was cut off


@pytest.fixture
def control():
    return FakeControl()


@pytest.fixture
def url(control):
    server = HttpServer(control, HttpSettings(port=0))
    server.start()
    yield f"http://127.0.0.1:{server.port}"
    server.stop()


def post(url, report):
    client = Client(url)
    try:
        client._ask("POST", "/v1/agent/queues", json.dumps(report).encode(), 10)
    finally:
        client.close()


PORT = {"dpid": "0000000000000001", "name": "eth1", "problem": "no"}


def test_what_a_newer_agent_reports_beside_is_passed_over(control, url):
    post(url, {"agent": "a", "version": "v", "ports": [PORT | {"more": 1}], "more": []})
    assert control.reports == [QueuesReport("a", "v", (PortReport(Dpid(1), "eth1", "no"),))]


def test_what_an_older_agent_does_not_report_is_named_with_the_way_out(control, url):
    lacking = {name: value for name, value in PORT.items() if name != "name"}
    with pytest.raises(ControllerError, match=r"422 .*: body\.ports\.0\.name: Field required; .*one release"):
        post(url, {"agent": "a", "version": "v", "ports": [lacking]})
    assert control.reports == []


def test_a_report_that_is_refused_again_and_again_is_logged_once(caplog):
    class Refusing:
        why = "422"

        def report(self, report):
            if self.why:
                raise ControllerError(self.why)

    agent, client, report = Agent(AgentSettings()), Refusing(), QueuesReport("a", "v", ())
    for why in ("422", "422", "503", "503", "", "503"):
        client.why = why
        assert agent._tell(client, report, replace(report)) == (not why)
    assert [record.getMessage() for record in caplog.records] == ["422", "503", "503"]


def test_a_report_of_odd_words_arrives(control, url):
    client = Client(url)
    problem = "tc: \udcff " + "x" * 2000
    client.report(QueuesReport("r" * 300, "v", (PortReport(Dpid(1), "eth1", problem),)))
    client.close()
    (report,) = control.reports
    assert report.agent == "r" * 252 + "..."
    assert report.ports[0].problem == "tc: ? " + "x" * 991 + "..."

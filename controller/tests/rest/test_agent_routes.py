"""What agents ask and report, by long polls."""

import json
import threading
import time

from client import PATIENCE_S, Client
from fake_control import MBIT, FakeControl

from trunkline_controller.http.agent import MAX_POLLS, Polls
from trunkline_controller.http.problem import Stop
from trunkline_controller.http.views.agent import WantedView
from trunkline_controller.net.topology import Dpid, PortNo
from trunkline_controller.queues.wanted import PortQueues, QueuesWanted, QueueWanted

DPID = "0000000000000011"


def wanted(rate_bit_s: int) -> QueuesWanted:
    queue = QueueWanted("shuffle", 1, 10, 2, 50 * MBIT, 300 * MBIT)
    return QueuesWanted(
        (
            PortQueues(Dpid(0x11), PortNo(1), "to-spine1", rate_bit_s, 0, (queue,)),
            PortQueues(Dpid(0x12), PortNo(1), "to-spine1", rate_bit_s, 0, (queue,)),
        ),
        frozenset({Dpid(0x11), Dpid(0x12)}),
        frozenset({(Dpid(0x11), "eth9"), (Dpid(0x12), "eth9")}),
    )


def until(condition) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.01)


def test_an_agent_is_told_of_its_own_switches(client: Client, control: FakeControl):
    control.want(wanted(300 * MBIT))
    found = client.get(f"/v1/agent/queues?dpid={DPID}").json
    told = WantedView.model_validate(found).wanted()
    assert told == control.queues_wanted((Dpid(0x11),))
    assert (told.switches, told.undecided, len(told.ports)) == ({0x11}, {(0x11, "eth9")}, 1)
    assert found["version"] == told.version


def test_a_poll_waits_for_another_version(client: Client, control: FakeControl):
    control.want(wanted(300 * MBIT))
    seen = client.get(f"/v1/agent/queues?dpid={DPID}").json["version"]
    answers = []
    asking = threading.Thread(
        target=lambda: answers.append(client.get(f"/v1/agent/queues?dpid={DPID}&seen={seen}&wait=60"))
    )
    asking.start()
    until(lambda: control.watchers)
    control.want(control.wanted)  # changed, though not for this agent
    assert answers == []
    control.want(wanted(100 * MBIT))
    asking.join(PATIENCE_S)
    assert answers[0].json["ports"][0]["rate_bit_s"] == 100 * MBIT
    until(lambda: not control.watchers)


def test_a_poll_that_saw_nothing_new_is_told_so_in_the_end(client: Client, control: FakeControl):
    version = control.wanted.version
    told = client.get(f"/v1/agent/queues?dpid={DPID}&seen={version}&wait=0.1").json
    assert told.pop("controller")  # its run, by which an agent knows whom it has reported to
    assert told == {"version": version, "switches": [], "ports": [], "undecided": []}


def test_a_server_that_stops_answers_those_who_wait(client: Client, control: FakeControl):
    version = control.wanted.version
    answers = []
    asking = threading.Thread(
        target=lambda: answers.append(client.get(f"/v1/agent/queues?dpid={DPID}&seen={version}&wait=60"))
    )
    asking.start()
    until(lambda: control.watchers)
    client.server.stop()
    asking.join(PATIENCE_S)
    assert answers[0].json["version"] == version


def test_so_many_polls_may_wait_and_no_more():
    polls = Polls()
    held = [polls.waiting(lambda n=n: None) for n in range(MAX_POLLS)]
    for each in held:
        each.__enter__()
    try:
        polls.waiting(lambda: None).__enter__()
    except Stop as stop:
        assert stop.status == 503
    else:
        raise AssertionError("one more was let in")
    held.pop().__exit__(None, None, None)
    with polls.waiting(lambda: None):
        pass


def test_who_need_not_wait_is_answered_though_all_places_are_taken(client: Client, control: FakeControl, monkeypatch):
    monkeypatch.setattr("trunkline_controller.http.agent.MAX_POLLS", 0)
    control.want(wanted(300 * MBIT))
    for query in ("wait=60", "seen=another&wait=60", f"seen={control.wanted.version}&wait=0"):
        assert client.get(f"/v1/agent/queues?dpid={DPID}&{query}").status == 200, query
    seen = client.get(f"/v1/agent/queues?dpid={DPID}").json["version"]
    assert client.get(f"/v1/agent/queues?dpid={DPID}&seen={seen}&wait=60").status == 503


def test_an_agent_reports_what_it_has_done(client: Client, control: FakeControl):
    report = {
        "agent": "rack1",
        "version": "abc",
        "ports": [{"dpid": DPID, "name": "to-spine1", "problem": "tc: permission\ndenied \u001b[2J"}],
    }
    answer = client.ask("POST", "/v1/agent/queues", json.dumps(report), Content_Type="application/json")
    assert (answer.status, answer.body) == (204, b"")
    (told,) = control.reports
    assert (told.agent, told.ports[0].dpid, told.ports[0].problem) == ("rack1", 0x11, "tc: permission?denied ?[2J")


def test_a_report_that_is_none_is_refused(client: Client, control: FakeControl):
    right = '{"agent": "a", "version": "v", "ports": []}'
    for body, kind, status in (
        (right, "text/plain", 415),
        ("{", "application/json", 422),
        ("[" * 100_000, "application/json", 400),
        ("[]", "application/json", 422),
        ('{"agent": 7}', "application/json", 422),
        (right.replace("[]", '[{"dpid": "1", "name": ""}]'), "application/json", 422),
        (right.replace('"a"', f'"{"a" * 300}"'), "application/json", 422),
    ):
        answer = client.ask("POST", "/v1/agent/queues", body, Content_Type=kind)
        assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json"), body[:50]
    for query in ("", "?dpid=1", "?dpid=" + "&dpid=".join([DPID] * 257), f"?dpid={DPID}&wait=61"):
        assert client.get(f"/v1/agent/queues{query}").status == 422
    assert control.reports == []

"""Agents at replicas' hosts: what they are told, and how they are kept waiting."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator

import pytest
from client import PATIENCE_S, TOKEN, Answer, Client
from fake_control import FakeControl, MirroringControl
from prometheus_client.parser import text_string_to_metric_families
from test_mirror_routes import POOL, hop

from trunkline_controller.http.mirror_agents import MAX_FAILED, MAX_HEADS
from trunkline_controller.mirror import agents

ID = f"{POOL}~1073741825~1001"
HOSTS = {"d1": "10.0.1.2", "d2": "10.0.2.1", "d3": "10.0.2.2"}


@pytest.fixture
def control() -> Iterator[MirroringControl]:
    made = MirroringControl()
    yield made
    made.stop()


def poll(client: Client, name: str, **others: object) -> Answer:
    said = {"run": "1", "addresses": [HOSTS.get(name, f"10.0.3.{name[1:]}")], "wait_ms": 0} | others
    return client.ask("POST", f"/v1/mirror-agents/{name}", json.dumps(said), Content_Type="application/json")


def head(zero: int, **others: object) -> dict[str, object]:
    """As the agent of the first replica reads it in the client's connection."""
    source, destination = {"address": "10.0.1.1", "port": 40000}, {"address": HOSTS["d1"], "port": 9866}
    return {"id": ID, "zero": zero, "source": source, "destination": destination} | others


def announce(client: Client, *positions: int, **others: object) -> None:
    for position in positions or (1, 2, 3):
        answer = client.ask("POST", "/v1/mirrors", json.dumps(hop(position, **others)), Content_Type="application/json")
        assert answer.status == 200, answer.text


class Waiting:
    """A poll that waits; returns when the controller knows of it."""

    def __init__(self, client: Client, control: MirroringControl, name: str, told: dict[str, object], **others: object):
        self.answers: list[Answer] = []
        said = {"seen": told["seen"], "controller": told["controller"], "wait_ms": 30_000} | others
        before = len(control.mirroring._polls)
        self.thread = threading.Thread(target=lambda: self.answers.append(poll(client, name, **said)))
        self.thread.start()
        until(lambda: len(control.mirroring._polls) > before or not self.thread.is_alive())

    def answer(self) -> Answer:
        self.thread.join(PATIENCE_S)
        return self.answers[0]


def until(condition) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up
        time.sleep(0.01)


def test_agents_are_told_which_connections_are_theirs(client: Client):
    for name in HOSTS:
        found = poll(client, name).json
    assert (found["flows"], found["lease_s"], found["stopped"]) == ([], 15.0, None)
    announce(client)
    first, second, third = (poll(client, name).json["flows"] for name in HOSTS)
    end = {name: {"address": address, "port": 9866} for name, address in HOSTS.items()}
    from_client = {"source": {"address": "10.0.1.1", "port": 40000}, "destination": end["d1"]}
    to_second = {"source": {"address": "10.0.1.2", "port": 40000}, "destination": end["d2"]}
    to_third = {"source": {"address": "10.0.2.1", "port": 40000}, "destination": end["d3"]}
    assert first == [
        {"id": ID, "position": 1, "receive": from_client, "send": to_second, "lead": True, "head": None},
    ]
    assert second == [
        {"id": ID, "position": 2, "receive": to_second, "send": to_third, "lead": False, "head": None},
    ]
    assert third == [{"id": ID, "position": 3, "receive": to_third, "send": None, "lead": False, "head": None}]
    poll(client, "d1", heads=[head(0xFFFFFFFF)])
    assert [poll(client, name).json["flows"][0]["head"] for name in HOSTS] == [None, 0xFFFFFFFF, 0xFFFFFFFF]
    assert client.get("/v1/mirrors").json["mirrors"][0]["head"] == 0xFFFFFFFF


def test_a_poll_waits_until_something_of_its_own_changes(client: Client, control: MirroringControl):
    for name in HOSTS:
        poll(client, name)
    announce(client, 1, 2)
    waiting = {name: Waiting(client, control, name, poll(client, name).json) for name in (*HOSTS, "d9")}
    announce(client, 3)
    told = {name: waiting[name].answer().json for name in HOSTS}
    assert [len(told[name]["flows"]) for name in HOSTS] == [1, 1, 1]
    assert not waiting["d9"].answers
    second = Waiting(client, control, "d2", told["d2"])
    poll(client, "d1", heads=[head(17)])
    assert second.answer().json["flows"][0]["head"] == 17
    last = Waiting(client, control, "d3", poll(client, "d3").json)
    assert client.ask("DELETE", f"/v1/mirrors/{ID}").status == 204
    assert last.answer().json["flows"] == []
    assert poll(client, "d9").status == 200
    assert not waiting["d9"].answers
    assert poll(client, "d9", run="2").status == 200
    ended = waiting["d9"].answer()
    assert (ended.status, "polled again" in ended.json["detail"]) == (409, True)


def test_what_another_run_of_the_controller_said_is_not_what_this_one_says(client: Client):
    told = poll(client, "d1").json
    seen = {"seen": told["seen"], "wait_ms": 30_000}
    for controller in ("", "another"):
        assert poll(client, "d1", controller=controller, **seen).json == told  # at once
    assert poll(client, "d1", controller=told["controller"], **seen | {"wait_ms": 1}).json == told


def test_an_agent_that_leaves_is_gone_at_once(client: Client):
    for name in HOSTS:
        poll(client, name)
    announce(client)
    told = poll(client, "d2", leaving=True, wait_ms=30_000).json
    assert (told["stopped"], told["flows"]) == (True, [])
    (mirror,) = client.get("/v1/mirrors").json["mirrors"]
    assert (mirror["state"], mirror["why"]) == ("refused", "no_agent")
    assert mirror["what"] == "no agent on host 10.0.2.1: start `trunkline mirror run` there"
    listed = client.get("/v1/mirror-agents").json["agents"]
    assert [(agent["name"], agent["addresses"], agent["pipelines"]) for agent in listed] == [
        ("d1", ["10.0.1.2"], 0), ("d3", ["10.0.2.2"], 0),
    ]  # fmt: skip
    late = poll(client, "d2")
    assert (late.status, late.json["why"]) == (409, "left")
    assert client.get("/v1/mirrors").json["mirrors"][0]["why"] == "no_agent"
    poll(client, "d2", run="2")
    assert client.get("/v1/mirrors").json["mirrors"][0]["state"] == "arming"
    assert [agent["pipelines"] for agent in client.get("/v1/mirror-agents").json["agents"]] == [1, 1, 1]


def test_two_starts_of_one_stream_are_refused(client: Client):
    for name in HOSTS:
        poll(client, name)
    announce(client)
    poll(client, "d2", heads=[head(3)])  # a stranger to this: it does not lead
    before = head(9, source={"address": "10.0.1.1", "port": 39999})  # a connection that is not copied
    poll(client, "d1", heads=[before, head(1), head(9, id="other~1~1"), before])
    assert client.get("/v1/mirrors").json["mirrors"][0]["head"] == 1
    assert poll(client, "d1", heads=[head(2)]).json["flows"] == []
    assert client.get("/v1/mirrors").json["mirrors"][0]["why"] == "two_heads"


def test_what_an_agent_can_not_do_is_not_mirrored(client: Client):
    for name in HOSTS:
        poll(client, name)
    announce(client)
    failed = [{"id": ID, "why": "its map\nof flows is full"}]
    poll(client, "d9", failed=failed)
    assert client.get("/v1/mirrors").json["mirrors"][0]["state"] == "arming"
    assert poll(client, "d3", failed=failed).json["flows"] == []
    (mirror,) = client.get("/v1/mirrors").json["mirrors"]
    assert (mirror["why"], mirror["what"]) == ("agent_failed", "agent d3 can't take part: its map?of flows is full")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"run": ""}, "run"),
        ({"run": "a b"}, "run"),
        ({"run": "x" * 65}, "run"),
        ({"addresses": []}, "addresses"),
        ({"addresses": ["10.0.0.1"] * 65}, "addresses"),
        ({"addresses": ["node1"]}, "node1"),
        ({"addresses": ["fe80::1%eth0"]}, "fe80::1%eth0"),
        ({"addresses": ["1" * 65]}, "addresses"),
        ({"addresses": "10.0.0.1"}, "addresses"),
        ({"seen": -1}, "seen"),
        ({"seen": 1 << 63}, "seen"),
        ({"controller": "x" * 65}, "controller"),
        ({"wait_ms": 30_001}, "wait_ms"),
        ({"wait_ms": float("nan")}, "wait_ms"),
        ({"heads": [head(1 << 32)]}, "zero"),
        ({"heads": [head(-1)]}, "zero"),
        ({"heads": [head(1, id="x" * 321)]}, "id"),
        ({"heads": [head(1)] * (MAX_HEADS + 1)}, "heads"),
        ({"heads": [{"id": ID, "zero": 1}]}, "source"),
        ({"heads": [{"id": ID, "zero": 1, "source": {"address": "10.0.1.1", "port": 40000}}]}, "destination"),
        ({"heads": [head(1, source={"address": "10.0.1.1", "port": 0})]}, "port"),
        ({"heads": [head(1, source={"address": "node1", "port": 1})]}, "node1"),
        ({"failed": [{"id": ID, "why": "x" * 256}]}, "why"),
        ({"failed": [{"id": ID, "why": ""}] * (MAX_FAILED + 1)}, "failed"),
        ({"leaving": "perhaps"}, "leaving"),
    ],
)
def test_what_is_no_poll_is_told_so_and_makes_no_agent(client: Client, control: MirroringControl, wrong, says):
    answer = poll(client, "d1", **wrong)
    assert (answer.status, answer.headers["content-type"]) == (422, "application/problem+json")
    assert says in answer.json["detail"]
    assert control.mirror_agents() == ()


def test_bodies_and_names_that_are_none_are_refused(client: Client, control: MirroringControl):
    right = json.dumps({"run": "1", "addresses": ["10.0.0.1"]})
    kind = {"Content_Type": "application/json"}
    for path, body, headers, status in (
        ("/v1/mirror-agents/d1", right, {"Content_Type": "text/plain"}, 415),
        ("/v1/mirror-agents/d1", "{", kind, 422),
        ("/v1/mirror-agents/d1", "[" * 100_000, kind, 400),
        ("/v1/mirror-agents/d1", '{"run": "' + "x" * 300_000 + '"}', kind, 413),
        (f"/v1/mirror-agents/{'d' * 256}", right, kind, 422),
        ("/v1/mirror-agents/d%0a1", right, kind, 422),
        ("/v1/mirror-agents/%3Cimg%3E", right, kind, 422),
        ("/v1/mirror-agents/", right, kind, 404),
        ("/v1/mirror-agents", right, kind, 405),
    ):
        answer = client.ask("POST", path, body, **headers)
        assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json"), path
    assert control.mirror_agents() == ()


def test_only_who_knows_the_token_is_an_agent(serve, token_file, control: MirroringControl):
    client = serve(token_file=token_file)
    body = json.dumps({"run": "1", "addresses": ["10.0.0.1"]})
    for authorization in ("", "Bearer wrong-wrong-wrong-wrong", f"Basic {TOKEN}"):
        headers = {"Content_Type": "application/json"} | ({"Authorization": authorization} if authorization else {})
        assert client.ask("POST", "/v1/mirror-agents/d1", body, **headers).status == 401
    assert client.get("/v1/mirror-agents").status == 401
    assert control.mirror_agents() == ()
    headers = {"Content_Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
    assert client.ask("POST", "/v1/mirror-agents/d1", body, **headers).status == 200
    assert client.ask("POST", "/v1/mirror-agents/d1", body, **headers, Origin="http://evil.example").status == 403


def test_an_address_that_another_agent_has_is_not_taken_over_and_the_log_says_so_once(client: Client, caplog):
    poll(client, "d1")
    for _ in range(3):
        answer = poll(client, "d9", addresses=[HOSTS["d1"], "10.0.3.9"])
        assert (answer.status, answer.json["why"]) == (409, "address_taken")
        assert "agent d1 is there" in answer.json["detail"]
    assert [agent["name"] for agent in client.get("/v1/mirror-agents").json["agents"]] == ["d1"]
    assert caplog.text.count("agent d9 is not taken: 10.0.1.2 is taken") == 1
    poll(client, "d1", leaving=True)
    assert poll(client, "d9", addresses=[HOSTS["d1"], "10.0.3.9"]).status == 200


def test_so_many_agents_are_there_and_no_more(client: Client, control: MirroringControl, monkeypatch):
    monkeypatch.setattr(agents, "MAX_AGENTS", 20)
    waiting = [Waiting(client, control, f"n{n}", poll(client, f"n{n}").json) for n in range(20)]
    answer = poll(client, "n20")
    assert (answer.status, answer.headers["retry-after"]) == (503, "30")
    assert "20 agents" in answer.json["detail"]
    # Polls of one that is there already end its earlier ones: no more wait than there are agents.
    for _ in range(3):
        assert poll(client, "n0", wait_ms=1).status == 200
    assert waiting[0].answer().status == 409
    assert len(control.mirroring._polls) == 19
    assert client.get("/healthz").status == 200
    for n in range(1, 20):
        poll(client, f"n{n}", leaving=True)
        assert waiting[n].answer().status == 409
    assert len(control.mirroring._polls) == 0


def test_a_server_that_stops_answers_those_who_wait(client: Client, control: MirroringControl):
    waiting = Waiting(client, control, "d1", poll(client, "d1").json)
    client.server.stop()
    answer = waiting.answer()
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    until(lambda: not len(control.mirroring._polls))


def test_agents_are_counted_and_described(client: Client):
    poll(client, "d1")
    found = {
        sample.name: sample.value
        for family in text_string_to_metric_families(client.get("/metrics").text)
        for sample in family.samples
    }
    assert found["trunkline_mirror_agents"] == 1
    paths = client.get("/openapi.json").json["paths"]
    assert set(paths["/v1/mirror-agents/{name}"]) == {"post"}
    assert set(paths["/v1/mirror-agents"]) == {"get"}
    assert {"200", "401", "409", "413", "415", "422", "503"} <= set(
        paths["/v1/mirror-agents/{name}"]["post"]["responses"]
    )


def test_where_mirroring_is_off_it_is_told_so(client: Client, control: MirroringControl, monkeypatch):
    monkeypatch.setattr(control, "mirror_poll", FakeControl().mirror_poll)
    answer = poll(client, "d1")
    assert (answer.status, answer.json["detail"]) == (409, "mirroring is off")

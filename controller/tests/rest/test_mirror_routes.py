"""Announcing hops of pipelines, and what is told of them."""

import json
from concurrent.futures import Future

import pytest
from client import TOKEN, Client
from fake_control import FakeControl
from prometheus_client.parser import text_string_to_metric_families

from trunkline_controller.control import NotNow
from trunkline_controller.mirror.mirrors import CLOSED
from trunkline_controller.mirror.model import Pipeline

POOL = "BP-1-10.0.1.1-1790000000000"


def hop(position: int, **others: object) -> dict[str, object]:
    """Of a client at 10.0.1.1 and replicas at 10.0.1.2, 10.0.2.1 and 10.0.2.2."""
    hosts = ["10.0.1.1", "10.0.1.2", "10.0.2.1", "10.0.2.2"]
    return {
        "pool": POOL,
        "block": 1073741825,
        "generation": 1001,
        "position": position,
        "replicas": 3,
        "source": {"address": hosts[position - 1], "port": 40000},
        "destination": {"address": hosts[position], "port": 9866},
        "client": "DFSClient_NONMAPREDUCE_1_1",
    } | others


def post(client: Client, body: object, **headers: str):
    text = body if isinstance(body, str) else json.dumps(body)
    return client.ask("POST", "/v1/mirrors", text, **({"Content_Type": "application/json"} | headers))


def test_hops_are_announced_one_by_one_listed_and_ended(client: Client, control: FakeControl):
    first = post(client, hop(1, wait_ms=20))
    assert first.status == 200
    assert (first.json["state"], first.json["missing"], first.json["lease_s"]) == ("announced", [2, 3], 60.0)
    assert first.json["complete"] is False
    assert control.waited_s == [0.02]
    post(client, hop(2))
    last = post(client, hop(3)).json
    assert (last["state"], last["complete"], last["why"], last["arm_ms"]) == ("arming", True, None, None)
    assert last["hops"][2] == {
        "position": 3,
        "source": {"address": "10.0.2.1", "port": 40000},
        "destination": {"address": "10.0.2.2", "port": 9866},
    }
    assert last["switches"][0] == "0000000000000011"
    for pipeline in control.mirrors():
        for dpid in pipeline.entries:
            control.pipelines.confirmed(dpid, control.pipelines.waiting(dpid), 0.0015)
    listed = client.get("/v1/mirrors").json
    assert (listed["enabled"], listed["total"], listed["mirrors"][0]["state"]) == (True, 1, "armed")
    assert listed["mirrors"][0]["arm_ms"] == 1.5
    # Up from the client's leaf, and down to each of the three hosts; the second and third share a leaf.
    links = listed["mirrors"][0]["links"]
    assert links[0] == "0000000000000011:3"
    assert {"0000000000000011:4", "0000000000000012:3", "0000000000000012:4"} < set(links)
    between = [link for link in links if "-" in link]
    assert len(between) == 2
    assert set(links) <= {link["id"] for link in client.get("/v1/links").json["links"]}
    assert (listed["mirrors"][0]["lead"], listed["mirrors"][0]["head"]) == (1, None)
    assert client.get("/v1/mirrors?state=refused").json["mirrors"] == []
    identity = last["id"]
    assert identity == f"{POOL}~1073741825~1001"
    assert client.ask("DELETE", f"/v1/mirrors/{identity}").status == 204
    gone = client.ask("DELETE", f"/v1/mirrors/{identity}")
    assert (gone.status, gone.json["status"]) == (404, 404)
    assert client.get("/v1/mirrors").json["total"] == 0


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"source": {"address": "node1", "port": 1}}, "node1"),
        ({"source": {"address": "10.0.1.1", "port": 0}}, "port"),
        ({"generation": -1}, "generation"),
        ({"pool": "../x"}, "pool"),
        ({"block": 1 << 63}, "block"),
        ({"wait_ms": 60_000}, "wait_ms"),
        ({"client": "x" * 256}, "client"),
        ({"replicas": None}, "replicas"),
    ],
)
def test_what_is_no_hop_is_told_so(client: Client, control: FakeControl, wrong, says):
    answer = post(client, hop(1, **wrong))
    assert answer.status == 422
    assert says in answer.json["detail"]
    assert answer.json["remedy"]
    assert control.mirrors() == ()


@pytest.mark.parametrize(
    ("body", "says", "why"),
    [
        (hop(1, replicas=1), "one replica", "one_replica"),
        (hop(1, client=""), "re-replication", "not_a_write"),
        (hop(1, replicas=7), "more than 6", "too_many_replicas"),
    ],
)
def test_what_is_never_mirrored_is_refused_with_its_reason(client: Client, control: FakeControl, body, says, why):
    answer = post(client, body)
    assert (answer.status, answer.headers["content-type"]) == (409, "application/problem+json")
    assert says in answer.json["detail"]
    assert answer.json["why"] == why
    assert control.mirrors() == ()


def test_a_pipeline_that_ends_while_it_is_waited_for_is_refused_with_a_reason(
    client: Client, control: FakeControl, monkeypatch: pytest.MonkeyPatch
):
    answered: Future[Pipeline] = Future()
    answered.set_exception(NotNow("the pipeline was closed", "announce its present hops", why=CLOSED))
    monkeypatch.setattr(control, "mirror_announce", lambda _hop, _wait_s: answered)
    answer = post(client, hop(1, wait_ms=100))
    assert (answer.status, answer.json["why"]) == (409, "closed")


def test_a_pipeline_that_can_not_be_mirrored_says_why(client: Client):
    for position in (1, 2):
        post(client, hop(position))
    answer = post(client, hop(3, destination={"address": "10.9.9.9", "port": 9866})).json
    assert (answer["state"], answer["why"]) == ("refused", "unknown_host")
    assert "10.9.9.9" in answer["what"]


def test_where_mirroring_is_off_it_is_told_so(client: Client, control: FakeControl):
    control.mirrors_enabled = False
    answer = post(client, hop(1))
    assert (answer.status, answer.json["detail"]) == (409, "mirroring is off")
    assert client.get("/v1/mirrors").json == {"enabled": False, "total": 0, "mirrors": []}


def test_only_who_knows_the_token_announces(serve, token_file):
    client = serve(token_file=token_file)
    for request in (("POST", "/v1/mirrors"), ("GET", "/v1/mirrors"), ("DELETE", "/v1/mirrors/x~1~1")):
        assert client.ask(*request).status == 401
    assert post(client, hop(1), Authorization=f"Bearer {TOKEN}").status == 200
    assert post(client, hop(1), Authorization=f"Bearer {TOKEN}", Origin="http://evil.example").status == 403
    assert post(client, hop(1), Authorization=f"Bearer {TOKEN}", Content_Type="text/plain").status == 415


def test_mirrors_are_counted(client: Client):
    post(client, hop(1))
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(client.get("/metrics").text)
        for sample in family.samples
        if sample.name.startswith("trunkline_mirror")
    }
    assert found["trunkline_mirror_enabled",] == 1
    assert found["trunkline_mirror_pipelines", "announced"] == 1
    assert found["trunkline_mirror_refused_total", "one_replica"] == 2
    assert found["trunkline_mirror_late_total",] == 3
    assert found["trunkline_mirror_arm_seconds_bucket", "+Inf"] == 0


def test_openapi_has_them(client: Client):
    paths = client.get("/openapi.json").json["paths"]
    assert set(paths["/v1/mirrors"]) == {"get", "post"}
    assert set(paths["/v1/mirrors/{identity}"]) == {"delete"}
    assert "409" in paths["/v1/mirrors"]["post"]["responses"]

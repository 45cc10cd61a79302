"""Paths that are answered without the framework: what they answer is what it would."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest
from client import Answer, Client
from fake_control import FakeControl, MirroringControl
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families
from test_bodies import values
from test_mirror_agent_routes import HOSTS, head, until
from test_mirror_routes import hop

from trunkline_controller.http.app import create_app
from trunkline_controller.http.gate import MAX_BODY_BYTES
from trunkline_controller.http.settings import HttpSettings

MANY = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
QUICK, FRAMEWORK = "application/json", "application/json; charset=utf-8"
POLL = {"run": "1", "addresses": [HOSTS["d1"]], "seen": 0, "wait_ms": 0, "heads": [head(1)]}


@pytest.fixture
def control() -> Iterator[MirroringControl]:
    made = MirroringControl(lease_s=86_400.0)
    yield made
    made.stop()


def asked(client: Client, path: str, body: bytes, kind: str) -> Answer:
    return client.ask("POST", path, body, Content_Type=kind)


def told(answer: Answer) -> tuple[int, object, dict[str, str]]:
    """All of it, but for the date."""
    return answer.status, answer.json, {name: value for name, value in answer.headers.items() if name != "date"}


def altered(whole: dict[str, object]) -> st.SearchStrategy[bytes]:
    """Bodies that are right, or nearly."""
    keys = st.sampled_from([*whole, "x"])
    values_of = st.one_of(values, st.sampled_from([*whole.values(), "1", "true", 2.0, -1, 1 << 63, {"address": "::1"}]))
    changes = st.dictionaries(keys, values_of, max_size=2)
    return changes.map(lambda changed: json.dumps(whole | changed).encode())


@given(body=st.one_of(st.binary(max_size=60), altered(hop(1)), values.map(lambda v: json.dumps(v).encode())))
@example(json.dumps(hop(1)).encode())
@example(json.dumps(hop(1) | {"source": {"address": "node1", "port": 1}}).encode())
@example(json.dumps(hop(1) | {"client": ""}).encode())
@example(json.dumps(hop(1) | {"wait_ms": float("nan")}).encode())
@example(b"[" * 100_000)
@MANY
def test_an_announcement_is_answered_as_by_the_framework(client: Client, body: bytes):
    quick, framework = (asked(client, "/v1/mirrors", body, kind) for kind in (QUICK, FRAMEWORK))
    assert told(quick) == told(framework)


@given(body=st.one_of(st.binary(max_size=60), altered(POLL), values.map(lambda v: json.dumps(v).encode())))
@example(json.dumps(POLL).encode())
@example(json.dumps(POLL | {"addresses": ["node1"]}).encode())
@MANY
def test_a_poll_is_answered_as_by_the_framework(client: Client, body: bytes):
    asked(client, "/v1/mirror-agents/d1", body, QUICK)  # what is told of a first one has another version
    quick, framework = (asked(client, "/v1/mirror-agents/d1", body, kind) for kind in (QUICK, FRAMEWORK))
    assert told(quick) == told(framework)


def test_what_does_not_say_its_length_or_kind_goes_by_the_framework(client: Client):
    body = json.dumps(hop(1)).encode()
    head = b"POST /v1/mirrors HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    chunked = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    assert client.raw(head + b"Content-Type: application/json\r\n" + chunked).startswith(b"HTTP/1.1 200 ")
    assert client.raw(head + chunked).startswith(b"HTTP/1.1 415 ")
    endless = b"Transfer-Encoding: chunked\r\n\r\n" + b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    with client.connect() as connection:
        connection.sendall(head + b"Content-Type: application/json\r\n" + endless)
        connection.sendall((b"10000\r\n" + b" " * 0x10000 + b"\r\n") * 4)
        assert connection.recv(4096).startswith(b"HTTP/1.1 413 ")


def test_a_length_beside_chunks_hides_none_of_them(client: Client):
    body = json.dumps(hop(1)).encode()
    head = b"POST /v1/mirrors HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n"
    both = head + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert client.raw(both + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)).startswith(b"HTTP/1.1 200 ")
    with client.connect() as connection:
        # It does not end, and is answered all the same.
        connection.sendall(both + (b"10000\r\n" + b" " * 0x10000 + b"\r\n") * 5)
        assert connection.recv(4096).startswith(b"HTTP/1.1 413 ")


def test_answers_are_counted_by_their_route(client: Client):
    asked(client, "/v1/mirrors", json.dumps(hop(1)).encode(), QUICK)
    asked(client, "/v1/mirrors", json.dumps(hop(1, replicas=1)).encode(), QUICK)
    asked(client, "/v1/mirror-agents/d1", json.dumps(POLL).encode(), QUICK)
    asked(client, "/v1/mirror-agents/d1", b"{}", QUICK)
    found = {
        tuple(sample.labels.values()): sample.value
        for family in text_string_to_metric_families(client.get("/metrics").text)
        for sample in family.samples
        if sample.name == "trunkline_http_requests_total"
    }
    for path, status in (
        ("/v1/mirrors", "200"),
        ("/v1/mirrors", "409"),
        ("/v1/mirror-agents/{name}", "200"),
        ("/v1/mirror-agents/{name}", "422"),
    ):
        assert found["POST", path, status] == 1


def test_a_failure_inside_tells_nothing_of_it(client: Client, control: MirroringControl, monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError("a secret of the controller's")

    monkeypatch.setattr(control, "mirror_announce", broken)
    quick, framework = (asked(client, "/v1/mirrors", json.dumps(hop(1)).encode(), kind) for kind in (QUICK, FRAMEWORK))
    assert told(quick) == told(framework)
    assert (quick.status, b"secret" in quick.body) == (500, False)
    until(lambda: caplog.text.count("POST /v1/mirrors failed") == 2)


def without_framework(parts: list[bytes], length: int, *more: tuple[bytes, bytes]) -> tuple[list[dict], int]:
    """What the quick way alone makes of an announcement's body in these parts, and how many of them it took."""
    app = create_app(FakeControl(), HttpSettings())
    app.app.app = None
    sent, left = [], list(parts)

    async def receive():
        part = left.pop(0)
        return {"type": "http.request", "body": part, "more_body": bool(left)}

    async def send(message):
        sent.append(message)

    headers = [
        (b"host", b"localhost"),
        (b"content-type", QUICK.encode()),
        (b"content-length", str(length).encode()),
        *more,
    ]
    scope = {"type": "http", "method": "POST", "path": "/v1/mirrors", "scheme": "http", "headers": headers}
    asyncio.run(app(scope, receive, send))
    return sent, len(parts) - len(left)


def test_the_framework_is_not_asked():
    body = json.dumps(hop(1)).encode()
    for parts in ([body], [body[:7], b"", body[7:]]):
        sent, _ = without_framework(parts, len(body))
        assert (sent[0]["status"], json.loads(sent[1]["body"])["state"]) == (200, "announced")


def test_a_body_that_is_longer_than_it_says_is_read_up_to_the_limit():
    part = b" " * (MAX_BODY_BYTES // 4)
    sent, taken = without_framework([part] * 64, 2)
    assert (sent[0]["status"], taken) == (413, 5)
    assert json.loads(sent[1]["body"])["detail"] == f"the request's body is longer than {MAX_BODY_BYTES} bytes"
    # What comes in chunks is the framework's, which is not there: nothing of it is read.
    sent, taken = without_framework([part] * 64, 2, (b"transfer-encoding", b"chunked"))
    assert (sent[0]["status"], taken) == (500, 0)

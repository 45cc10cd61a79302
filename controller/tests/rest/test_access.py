"""Who is let in: by Host, Origin and token, on the headers alone and on a server."""

from collections.abc import Callable
from pathlib import Path

import pytest
from client import TOKEN, Client
from fake_control import TEXT, FakeControl

from trunkline_controller.http import access
from trunkline_controller.http.tokens import OPERATOR, Tokens

OWN = ("controller.example",)


def refused(*headers: tuple[str, str], scheme: str = "http") -> bool:
    found = access.refusal([(name.encode(), value.encode("latin-1")) for name, value in headers], scheme, OWN)
    return found is not None and found.status == 403


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:8181", "127.0.0.1:1", "[::1]:8181", "[::1]", "192.0.2.1", "Controller.Example:80"],
)
def test_our_own_names_are_answered(host: str):
    assert not refused(("host", host))


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "localhost:80@evil.example",
        "[::1",
        "evil.example:localhost",
        "controller.example.",
        "localhost:123456",
        "localhost\n",
        "loc\xe4lhost",
    ],
)
def test_other_hosts_are_refused(host: str):
    assert refused(("host", host))


def test_one_host_header_counts():
    assert refused()
    assert refused(("host", "localhost"), ("host", "evil.example"))


def test_pages_of_others_are_refused():
    host = ("host", "localhost:8181")
    assert not refused(host, ("origin", "http://localhost:8181"))
    for origin in (
        "http://evil.example",
        "null",
        "",
        "http://localhost",
        "http://localhost:80",
        "https://localhost:8181",
    ):
        assert refused(host, ("origin", origin)), origin
    assert refused(host, ("origin", "http://localhost:8181"), ("origin", "http://evil.example"))
    assert not refused(host, ("origin", "https://localhost:8181"), scheme="https")

    def site(value: str, mode: str, destination: str) -> bool:
        return refused(host, ("sec-fetch-site", value), ("sec-fetch-mode", mode), ("sec-fetch-dest", destination))

    assert not site("same-origin", "cors", "empty")
    assert not site("none", "navigate", "document")
    assert not site("cross-site", "navigate", "document")
    assert site("cross-site", "navigate", "iframe")
    assert site("cross-site", "no-cors", "image")
    assert site("same-site", "cors", "empty")


@pytest.mark.parametrize(
    ("given", "right"),
    [
        ("Bearer secret-secret-secret", True),
        ("bearer  secret-secret-secret", True),
        ("Bearer secret-secret-secre", False),
        ("Bearer secret-secret-secret2", False),
        ("Bearer", False),
        ("Basic secret-secret-secret", False),
        ("secret-secret-secret", False),
        ("", False),
        ("Bearer \xe4", False),
    ],
)
def test_the_token_is_compared_whole(given: str, right: bool):
    headers = [(b"authorization", given.encode("latin-1"))]
    tokens = Tokens(b"secret-secret-secret")
    assert (tokens.caller(headers, "GET", "/v1/status") is OPERATOR) is right
    for none in (headers * 2, []):
        assert tokens.caller(none, "GET", "/v1/status").status == 401
    assert Tokens().caller([], "GET", "/v1/status") is OPERATOR


def test_without_the_token_nothing_of_the_network_is_told(
    serve: Callable[..., Client], token_file: Path, control: FakeControl
):
    client = serve(token_file=token_file)
    paths = [path for path in client.get("/openapi.json").json["paths"] if path.startswith("/v1")]
    asked = [("GET", path) for path in [*paths, "/metrics", "/v1", "/v1x", "/v1/nothing", "/v1/../v1/status"]]
    asked += [
        ("PUT", "/v1/policy"),
        ("DELETE", "/v1/policy"),
        ("POST", "/v1/policy/check"),
        ("POST", "/v1/agent/queues"),
    ]
    for method, path in asked:
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            answer = client.ask(method, path, TEXT, **headers)
            assert answer.status == 401, (method, path)
            assert answer.headers["www-authenticate"].startswith("Bearer ")
            assert "--token-file" in answer.json["remedy"]
    assert control.applied == ()
    for path in ("/", "/healthz", "/openapi.json", "/icon.svg"):
        assert client.get(path).status == 200, path

    client.headers["Authorization"] = f"Bearer {TOKEN}"
    assert client.get("/v1/status").status == 200
    assert client.put_policy(TEXT).status == 200
    assert client.get("/metrics").status == 200


def test_a_foreign_page_changes_and_reads_nothing(client: Client, control: FakeControl):
    for headers in (
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "no-cors"},
        {"Host": "rebound.example:8181"},
    ):
        for answer in (
            client.put_policy(TEXT, **headers),
            client.ask("DELETE", "/v1/policy", **headers),
            client.get("/v1/topology", **headers),
            client.get("/", **headers),
        ):
            assert (answer.status, answer.headers["content-type"]) == (403, "application/problem+json"), headers
            assert "access-control-allow-origin" not in answer.headers
    assert control.applied == ()
    assert client.ask("OPTIONS", "/v1/policy", Origin="http://evil.example").status == 403

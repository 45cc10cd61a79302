"""Requests that are malformed, too large or endless: each is answered or ended, and the server goes on."""

import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from client import PATIENCE_S, Client, read_all
from fake_control import TEXT, FakeControl

from trunkline_controller.http.gate import MAX_BODY_BYTES

PROBLEM = "application/problem+json"
HOST = b"Host: localhost\r\n"


@pytest.fixture(autouse=True)
def goes_on(client: Client) -> Iterator[None]:
    yield
    assert client.get("/healthz").status == 200


def test_a_body_that_is_too_long_is_not_read(client: Client, control: FakeControl):
    # Only the length is announced: an answer that comes is one that did not wait for the body.
    for method, path in ((b"PUT", b"/v1/policy"), (b"GET", b"/v1/status"), (b"POST", b"/v1/agent/queues")):
        head = b"%s %s HTTP/1.1\r\n%sContent-Type: text/yaml\r\nContent-Length: %d\r\n\r\n"
        answer = client.raw(head % (method, path, HOST, MAX_BODY_BYTES + 1))
        assert answer.startswith(b"HTTP/1.1 413 "), answer
        assert PROBLEM.encode() in answer
    assert control.applied == ()


def test_a_body_without_a_length_stops_at_the_limit(client: Client, control: FakeControl):
    head = b"PUT /v1/policy HTTP/1.1\r\n" + HOST + b"Content-Type: text/yaml\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    with client.connect() as connection:
        connection.sendall(head + chunk * 5)
        assert connection.recv(4096).startswith(b"HTTP/1.1 413 ")
    assert control.applied == ()


def test_the_largest_body_is_taken(client: Client):
    text = TEXT + "#" * (MAX_BODY_BYTES - len(TEXT))
    assert client.put_policy(text).status == 200
    assert client.put_policy(text + "#").status == 413


def test_wrong_content_types_are_refused(client: Client, control: FakeControl):
    for kind in ("application/json", "text/plain", "application/x-www-form-urlencoded", "", "text/yaml2", "\xe4"):
        answer = client.put_policy(TEXT, Content_Type=kind)
        assert (answer.status, answer.headers["content-type"]) == (415, PROBLEM), kind
        assert "text/yaml" in answer.json["remedy"]
    for kind in ("text/yaml; charset=utf-8", "application/yaml", "TEXT/YAML"):
        assert client.put_policy(TEXT, Content_Type=kind).status == 200, kind
    assert len(control.applied) == 3


def test_text_that_is_none_is_refused(client: Client, control: FakeControl):
    answer = client.put_policy(b"name: \xff")
    assert (answer.status, answer.json["detail"]) == (400, "byte 7 of the body is not UTF-8")
    assert client.put_policy("").status == 422
    assert control.applied == ()


def test_names_and_numbers_out_of_range_are_refused(client: Client):
    for name in ("", "a" * 256, "%00", "a%0Ab", "%7f"):
        assert client.put_policy(TEXT, f"/v1/policy/check?name={name}").status == 422, name
    for query in ("limit=0", "limit=10001", "limit=x", "offset=-1", "port=-1", "port=1e9", "dpid=11", "dpid=%00"):
        answer = client.get(f"/v1/queues?{query}")
        assert (answer.status, answer.headers["content-type"]) == (422, PROBLEM), query
    assert client.get("/v1/switches/11/flows").status == 422
    assert client.get(f"/v1/policy/history/{1 << 63}").status == 422


def test_methods_that_do_not_apply_are_named(client: Client):
    for method, path, allowed in (
        ("POST", "/v1/policy", {"GET", "PUT", "DELETE"}),
        ("PUT", "/v1/status", {"GET"}),
        ("GET", "/v1/policy/check", {"POST"}),
        ("DELETE", "/", {"GET", "HEAD"}),
        ("BREW", "/v1/status", {"GET"}),
        ("TRACE", "/healthz", {"GET"}),
    ):
        answer = client.ask(method, path)
        assert (answer.status, answer.headers["content-type"]) == (405, PROBLEM), (method, path)
        assert set(answer.headers["allow"].split(", ")) <= allowed


def test_tricks_with_paths_find_nothing(client: Client):
    for path in (
        "/../../../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/page/../settings.py",
        "/page/index.html",
        "//etc/passwd",
        "/page.js%00.svg",
        "/icon.svg/",
        "/v1/status/",
        "/v1//status",
        "/v1/switches/..%2f..%2f/flows",
        "/v1/links/%2e%2e/flows",
        "/docs",
        "/redoc",
        "/__init__.py",
        "*",
    ):
        assert client.get(path).status in {404, 422}, path
    assert client.get("http://evil.example/v1/status").status == 403
    assert client.raw(b"GET http://localhost/v1/status HTTP/1.0\r\n" + HOST + b"\r\n").startswith(b"HTTP/1.1 404 ")


def test_what_is_no_http_is_told_so(client: Client):
    for request in (
        b"\r\n\r\n\r\nnonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",  # without Host
        b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nbad header\r\n\r\n",
        b"PUT /v1/policy HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"PUT /v1/policy HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"PUT /v1/policy HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9" + b"9" * 30 + b"\r\n\r\n",
        bytes(range(256)) * 4 + b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 600 + b"\r\n\r\n",  # TLS
    ):
        answer = client.raw(request)
        assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 413 ")), (request[:60], answer)
        assert PROBLEM.encode() in answer, request[:60]


def test_a_flood_of_headers_ends(client: Client):
    for flood in (b"X-A: " + b"a" * 100_000, b"".join(b"X-%d: a\r\n" % n for n in range(20_000)), b"GET /" * 20_000):
        with client.connect() as connection:
            try:
                connection.sendall(b"GET / HTTP/1.1\r\n" + HOST + flood)
                answer = read_all(connection)
            except (BrokenPipeError, ConnectionResetError):
                continue  # it had ended before we were done
            assert answer == b"" or answer.startswith(b"HTTP/1.1 400 ")


def test_pipelined_requests_are_answered_in_turn(client: Client):
    request = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
    last = b"GET /v1/status HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
    assert client.raw(request * 20 + last).count(b"HTTP/1.1 200 ") == 21


def test_an_upgrade_is_not_taken(client: Client):
    headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
    assert client.get("/v1/status", **headers).status == 200


def test_clients_that_stall_are_ended(serve: Callable[..., Client]):
    client = serve(patience_s=0.5)
    head = b"PUT /v1/policy HTTP/1.1\r\n" + HOST + b"Content-Type: text/yaml\r\nContent-Length: 10\r\n\r\n"
    whole = b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n"
    stalled = []
    for begun in (b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: loc", head, head + b"name:", whole, whole + b"G"):
        connection = client.connect()
        stalled.append(connection)
        connection.sendall(begun)
    for connection in stalled:
        with connection:
            read_all(connection)  # ends because the server ends it


def test_a_client_that_drips_is_ended(serve: Callable[..., Client]):
    client = serve(patience_s=0.5)
    stopped = threading.Event()
    with client.connect() as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n" + HOST + b"X-A: ")

        def drip() -> None:
            while not stopped.wait(0.05):
                try:
                    connection.sendall(b"a")
                except OSError:
                    return

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            assert read_all(connection) == b""
        finally:
            stopped.set()
            dripping.join()


def test_a_client_that_takes_no_answer_is_ended(serve: Callable[..., Client]):
    client = serve(patience_s=0.5)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(PATIENCE_S)
        connection.connect((client.server.settings.address, client.server.port))
        asked = b"GET /openapi.json HTTP/1.1\r\n" + HOST + b"\r\n"
        # Until the server neither reads on nor holds on, it takes questions whose answers nobody reads.
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            while True:
                connection.sendall(asked)


def test_connections_beyond_the_number_are_turned_away(serve: Callable[..., Client]):
    client = serve(max_connections=16)
    held = []
    try:
        while True:
            connection = client.connect()
            held.append(connection)
            connection.sendall(b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n")
            try:
                answer = connection.recv(4096)
            except ConnectionResetError:
                answer = b""
            if not answer:
                break
        assert len(held) == 16 // 4 + 1
    finally:
        for connection in held:
            connection.close()


def test_a_failure_inside_tells_nothing_of_it(client: Client, control: FakeControl):
    control.broken = True
    answer = client.get("/v1/status")
    assert (answer.status, answer.headers["content-type"]) == (500, PROBLEM)
    assert b"secret" not in answer.body
    assert answer.headers["x-content-type-options"] == "nosniff"
